/* A detector board in software: send ADDRESS PORT SOURCE BDM SECONDS HITS_PER_S TICK_PS */
#include <arpa/inet.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { HEADER = 16, FRAME = 16, MOST_FRAMES = 91, FLUSH_US = 4000 }; /* 1,472 bytes: an MTU of 1500 */

static void put(uint8_t *at, uint64_t value, int bytes) { /* big-endian */
    for (; bytes-- > 0; value >>= 8) at[bytes] = (uint8_t)value;
}
static double now_s(void) { /* stands for the clock of the detector, which all boards share */
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}
int main(int argc, char **argv) {
    if (argc != 8) return fprintf(stderr, "usage: %s ADDRESS PORT SOURCE BDM SECONDS HITS_PER_S TICK_PS\n", *argv), 64;
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(argv[2]))};
    const int out = socket(AF_INET, SOCK_DGRAM, 0);
    if (inet_pton(AF_INET, argv[1], &to.sin_addr) != 1 || connect(out, (struct sockaddr *)&to, sizeof to) != 0)
        return perror(argv[1]), 1;
    const double rate = atof(argv[6]), ticks_per_s = 1e12 / atof(argv[7]), start = now_s();
    uint8_t data[HEADER + MOST_FRAMES * FRAME] = {'P', 'E', 'T', 'F', 1}; /* magic, version */
    put(data + 6, (uint64_t)atoi(argv[3]), 2);
    uint64_t total = (uint64_t)(atof(argv[5]) * rate), sequence = 0, hits = 0, frames_sent = 0, tags = 0;
    for (int last = 0; !last;) {
        const double due = (now_s() - start) * rate;
        int frames = 0; /* none: the datagram is a heartbeat */
        for (; hits < total && (double)hits <= due && frames < MOST_FRAMES; frames++) {
            uint8_t *const f = data + HEADER + frames * FRAME;
            const double time_s = start + (double)hits / rate;
            const int tag = time_s >= start + (double)tags; /* once a second: trigger, channel 0 */
            f[0] = tag ? 0xB0 : 0xA0;                              /* marker; DU 0, channel 0 */
            f[1] = tag ? 0 : (uint8_t)atoi(argv[4]);               /* kind; BDM */
            put(f + 2, (uint64_t)(time_s * ticks_per_s), 8);
            put(f + 10, tag ? tags++ : 12 << 24 | 34 << 16 | 500, 4); /* value; x, y, energy */
            put(f + 14, tag ? 0x0005 : 25 << 8 | 0x05, 2);         /* 25 degrees C, tail marker */
            hits += !tag;
        }
        data[5] = (uint8_t)(last = hits == total); /* flag: end of stream */
        put(data + 8, sequence++, 8);
        if (send(out, data, (size_t)(HEADER + frames * FRAME), 0) < 0) perror("send");
        frames_sent += (uint64_t)frames;
        if (frames < MOST_FRAMES) usleep(FLUSH_US); /* full datagrams go at once, others after 4 ms */
    }
    return printf("{\"datagrams\": %.0f, \"frames\": %.0f}\n", (double)sequence, (double)frames_sent) < 0;
}
