#include "tools/petctl/doctor/interfaces.hpp"

#include <fstream>
#include <sstream>

namespace petacq::petctl {

ReceivedPackets read_received_packets() {
    ReceivedPackets received;
    std::ifstream file("/proc/net/dev");
    std::string line;
    // "  eth0: bytes packets ...", below two lines of titles.
    while (std::getline(file, line)) {
        const std::size_t colon = line.find(':');
        if (colon == std::string::npos) continue;
        std::istringstream values(line.substr(colon + 1));
        const std::size_t begin = line.find_first_not_of(' ');
        double bytes = 0;
        double packets = 0;
        if (values >> bytes >> packets) received[line.substr(begin, colon - begin)] = packets;
    }
    return received;
}

ReceivedPackets growth(const ReceivedPackets& before, const ReceivedPackets& after) {
    ReceivedPackets grown;
    for (const auto& [name, value] : after) {
        const auto earlier = before.find(name);
        grown[name] = value - (earlier == before.end() ? 0 : earlier->second);
    }
    return grown;
}

}  // namespace petacq::petctl
