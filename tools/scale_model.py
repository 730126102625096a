"""Hosts that save singles, and an MPI job (petlm-mpi --follow) that makes coincidences of them meanwhile: the model of
tools/scale. docs/explanation/scale.md explains it.
"""

import bisect
import collections
import itertools
import math

SINGLE_BYTES = 16  # docs/reference/list-mode-format.md
BLOCK_HEADER_BYTES = 64
RESULT_BYTES = 6.4  # of coincidences per single: 0.2 x 32 bytes (docs/explanation/measurements.md)
FINEST_WRITE_S = 0.005  # what a host writes in this time is one unit: blocks of fast hosts are not simulated one by one
IDLE_S = 0.2  # a job without a shard looks again after this time (tools/petlm/mpi/job.cpp)
SHARD_S = 1.0  # of detector time: a shard with fewer singles is this long (tools/petlm/mpi/plan.cpp)


class Units:
    """The singles of a host as they reach its disk: units of one or more blocks, each in one stretch of detector time."""

    def __init__(self):
        self.first, self.last, self.written, self.sums = [], [], [], [0]

    def add(self, first, last, written, singles):
        self.first.append(first)
        self.last.append(last)
        self.written.append(written)
        self.sums.append(self.sums[-1] + singles)

    def before(self, time):
        """Singles before this detector time."""
        i = bisect.bisect_right(self.first, time) - 1
        if i < 0:
            return 0
        share = min(1.0, (time - self.first[i]) / (self.last[i] - self.first[i]))
        return self.sums[i] + math.floor((self.sums[i + 1] - self.sums[i]) * share)

    def known(self, now):
        """The end of what has been written."""
        i = bisect.bisect_right(self.written, now)
        return self.last[i - 1] if i else 0.0

    def saved(self, now):
        return self.sums[bisect.bisect_right(self.written, now)]


class Host:
    """A daemon that writes the singles of its boards, until its run ends. Ranks have no influence on it."""

    def __init__(self, number, rate, delay, options):
        self.number, self.rate, self.delay, self.options = number, rate, delay, options
        self.silent = [(a, b) for host, a, b in options.silent if host == number]
        self.stalls = sorted((a, b) for host, a, b in options.stall if host == number)
        self.killed = min((t for host, t in options.kill_host if host == number), default=math.inf)
        self.end = min([options.seconds] + [t for host, t in options.stop_host if host == number])
        self.units = Units()
        self.dropped = self.lost = self.most_bytes = 0
        self.write()

    def active(self, begin, end):
        """The parts of a stretch in which the boards send."""
        spans = [(begin, end)]
        for a, b in self.silent:
            spans = [(x, y) for s, e in spans for x, y in ((s, min(e, a)), (max(s, b), e)) if x < y]
        return spans

    def sent(self, time):
        """Singles of the boards before this detector time."""
        return round(self.rate * sum(b - a for a, b in self.active(0.0, time)))

    def disk_done(self, begin, seconds):
        for a, b in self.stalls:
            if a < begin + seconds and begin < b:
                seconds += b - max(a, begin)
        return begin + seconds

    def write(self):
        options = self.options
        block = (options.block_bytes - BLOCK_HEADER_BYTES) // SINGLE_BYTES
        length = max(FINEST_WRITE_S, min(block / self.rate, options.sync_interval_ms * 1e-3))
        free, done, waiting, bytes_waiting = 0.0, 0.0, collections.deque(), 0
        for k in itertools.count(-self.number / options.hosts):  # blocks of the hosts do not begin together
            begin, end = max(0.0, k * length), min((k + 1) * length, self.end)
            ready = end + self.delay
            if begin >= self.end or ready > self.killed:
                break
            singles = self.sent(end) - self.sent(begin)
            if not singles:
                continue
            while waiting and waiting[0][0] <= ready:
                bytes_waiting -= waiting.popleft()[1]
            size = singles * SINGLE_BYTES
            if bytes_waiting + size > options.memory * 2**30:
                self.dropped += singles
                continue
            done = free = self.disk_done(max(ready, free), size / (options.disk * 1e9))
            waiting.append((done, size))
            bytes_waiting += size
            self.most_bytes = max(self.most_bytes, bytes_waiting)
            if done <= self.killed:
                active = self.active(begin, end)
                self.units.add(active[0][0], active[-1][1], done, singles)
        if self.killed < max(done, self.end + self.delay):  # with its last whole block
            self.ended = self.killed
            self.received = min(self.killed, self.end)
            self.lost = self.sent(self.received) - self.units.sums[-1] - self.dropped
            self.end = self.units.last[-1] if self.units.last else 0.0
        else:
            self.ended = max(done, self.end + self.delay)
            self.received = self.end

    def not_received(self):
        return self.sent(self.options.seconds) - self.sent(self.received)


Part = collections.namedtuple("Part", "done begin end singles")


class Job:
    """petlm-mpi --follow: rounds, in each of which a rank searches at most one shard."""

    def __init__(self, hosts, options):
        self.hosts, self.options = hosts, options
        self.kills = sorted((t, rank) for rank, t in options.kill_rank)
        self.rates = [dict(options.slow_rank).get(rank, options.rank_rate) for rank in range(options.ranks)]
        self.links = [dict(options.slow_link).get(host, options.link) * 1e9 for host in range(options.hosts)]
        self.host_of = [rank * options.hosts // options.ranks for rank in range(options.ranks)]
        self.on_host = [[r for r, h in enumerate(self.host_of) if h == host] for host in range(options.hosts)]
        self.order = sorted((first, host.number, i) for host in hosts for i, first in enumerate(host.units.first))
        self.firsts = [unit[0] for unit in self.order]
        self.sums = [0, *itertools.accumulate(hosts[host].units.sums[i + 1] - hosts[host].units.sums[i]
                                              for _, host, i in self.order)]
        self.parts, self.failures, self.down = [], [], []
        self.work, self.most_bytes = [[0, 0.0] for _ in self.rates], 0.0
        self.position, self.now = 0.0, 0.0
        self.finished_at = None
        self.run()

    def watermark(self, now):
        """The minimum over the hosts of what they have written (watermark_of() in tools/petlm/mpi/plan.cpp)."""
        ends_with_first = len(self.hosts) > 1 and not self.options.partial
        return min((host.end if ends_with_first else math.inf) if host.ended <= now else host.units.known(now)
                   for host in self.hosts)

    def shards(self, end, all_ended):
        """next_shards() in tools/petlm/resort/search/shard.cpp, units in place of blocks."""
        ranks, wanted = self.options.ranks, self.options.shard_singles
        found, start, i = [], self.position, bisect.bisect_left(self.firsts, self.position)
        passed = 0
        for host in self.hosts:  # what lies across the begin counts whole
            k = bisect.bisect_left(host.units.first, start) - 1
            if k >= 0 and host.units.last[k] > start:
                passed += host.units.sums[k + 1] - host.units.sums[k]
        while len(found) < ranks:
            cut = max(bisect.bisect_left(self.sums, self.sums[i] + wanted - passed, i), i)
            while cut < len(self.firsts) and self.firsts[cut] <= start:
                cut += 1
            if cut >= len(self.firsts) or self.firsts[cut] >= end:
                break
            found.append((start, self.firsts[cut]))
            start, i, passed = self.firsts[cut], cut, 0
        if len(found) < ranks and end > start and (all_ended or end - start >= SHARD_S):
            found.append((start, end))
        return found

    def exchange(self, shards, begin):
        """When each rank has its singles. In step s a rank sends to the one s places after it, and receives from
        the one s places before it (Exchange::singles())."""
        ranks = self.options.ranks
        free, bytes_received = [begin] * ranks, [0] * ranks
        if self.options.storage == "shared":
            return free, bytes_received
        out, into = [begin] * self.options.hosts, [begin] * self.options.hosts
        wanted = {(len(self.parts) + number) % ranks: shard for number, shard in enumerate(shards)}
        for step in range(1, ranks):
            before = list(free)
            for source in range(ranks):
                to = (source + step) % ranks
                size = sum(self.shipped(host, wanted[to]) for host in self.hosts
                           if to in wanted and self.provider(host, to) == source)
                if size == 0:
                    continue
                here, there = self.host_of[source], self.host_of[to]
                bytes_received[to] += size
                done = max(before[source], before[to], out[here], into[there])
                done += size / min(self.links[here], self.links[there])
                free[source], free[to] = max(free[source], done), max(free[to], done)
                out[here] = into[there] = done
        return free, bytes_received

    def provider(self, host, to):
        """The rank that sends the host's singles to this one. None: it reads them itself."""
        able = self.on_host[host.number]
        return None if self.host_of[to] == host.number else able[to % len(able)]

    @staticmethod
    def shipped(host, shard):
        return (host.units.before(shard[1]) - host.units.before(shard[0])) * SINGLE_BYTES

    def search(self, shards):
        """One round. Returns the parts that it makes."""
        free, received = self.exchange(shards, self.now)
        parts = []
        for number, (begin, end) in enumerate(shards):
            rank = (len(self.parts) + number) % self.options.ranks
            singles = sum(host.units.before(end) - host.units.before(begin) for host in self.hosts)
            seconds = singles / self.rates[rank]
            parts.append(Part(free[rank] + seconds, begin, end, singles))
            self.work[rank][0] += singles
            self.work[rank][1] += seconds
            self.most_bytes = max(self.most_bytes, received[rank] + singles * RESULT_BYTES)
        return parts

    def killed(self, parts):
        """A rank is killed, and the job with it. What is complete on disk up to the first gap stays."""
        at, rank = self.kills.pop(0)
        kept = list(itertools.takewhile(lambda part: part.done <= at, parts))
        self.parts += kept
        again = sum(part.singles for part in parts[len(kept):])
        self.position = kept[-1].end if kept else self.position
        self.now = at + self.options.restart_s
        self.down.append((at, self.now))
        self.kills = [kill for kill in self.kills if kill[0] >= self.now]  # there was nothing to kill
        self.failures.append({"rank": rank, "at_s": at, "again_singles": again, "up_s": self.now,
                              "waiting_singles": self.waiting(self.now), "caught_up_s": None})

    def waiting(self, now):
        return sum(host.units.saved(now) for host in self.hosts) - sum(p.singles for p in self.parts if p.done <= now)

    def run(self):
        while self.now < self.options.until:
            all_ended = all(host.ended <= self.now for host in self.hosts)
            ends = [host.end for host in self.hosts]
            last = max(ends) if self.options.partial else min(ends)
            end = last if all_ended else self.watermark(self.now)
            shards = self.shards(end, all_ended)
            if len(shards) < self.options.ranks:
                for failure in self.failures:
                    failure["caught_up_s"] = failure["caught_up_s"] or self.now
            parts = self.search(shards)
            after = max((part.done for part in parts), default=self.now + (0 if all_ended else IDLE_S))
            if self.kills and self.kills[0][0] < after:
                self.killed(parts)
                continue
            if after > self.options.until:
                self.parts += itertools.takewhile(lambda part: part.done <= self.options.until, parts)
                break
            self.parts += parts
            self.position, self.now = parts[-1].end if parts else self.position, after
            if all_ended and self.position >= last:
                self.finished_at = self.now
                break

    def done_to(self, now):
        """Detector time up to which all parts are written."""
        done = list(itertools.takewhile(lambda part: part.done <= now, self.parts))
        return done[-1].end if done else 0.0


def account(hosts, job, options):
    """Where every frame went. The sum of what is named is compared with what the boards sent."""
    until = min(options.until, job.finished_at or math.inf)
    ends = [host.end for host in hosts]
    limit = math.inf if options.partial else min(ends)
    sent = sum(host.sent(options.seconds) for host in hosts)
    frames = round(sent / options.accepted)
    after = sum(host.units.sums[-1] - host.units.before(limit) for host in hosts) if job.finished_at else 0
    in_parts = sum(part.singles for part in job.parts)
    pending = 0 if job.finished_at else sum(host.units.sums[-1] for host in hosts) - in_parts
    named = {"in_parts": in_parts, "pending": pending, "outside_interval": after,
             "dropped_by_hosts": sum(host.dropped for host in hosts),
             "lost_with_daemons": sum(host.lost for host in hosts),
             "not_received": sum(host.not_received() for host in hosts)}
    tiled = all(a.end == b.begin for a, b in itertools.pairwise(job.parts)) and (
        not job.parts or job.parts[0].begin == 0)
    return {"frames": frames, "rejected": frames - sent, "singles": sent, **named, "parts_follow_each_other": tiled,
            "closes": tiled and sent == sum(named.values()), "simulated_s": until if until < math.inf else job.now}


def state_at(job, now):
    if any(a <= now < b for a, b in job.down):
        return "down"
    return "done" if job.finished_at is not None and now >= job.finished_at else ""


def simulate(options):
    middle = (options.hosts - 1) / 2
    share = [1 + options.skew * (h - middle) / middle if middle else 1.0 for h in range(options.hosts)]
    late = [options.delay + options.delay_spread * h / max(1, options.hosts - 1) for h in range(options.hosts)]
    mean = options.rate * options.accepted / options.hosts
    hosts = [Host(h, mean * share[h], late[h], options) for h in range(options.hosts)]
    job = Job(hosts, options)
    ledger = account(hosts, job, options)
    end = ledger.pop("simulated_s")
    step = options.every or max(0.1, round(end / 10, 1))
    times = [step * i for i in range(1, math.ceil(end / step))] + [end]
    rows = []
    for now in times:
        mark = min(job.watermark(now), max(host.end for host in hosts))
        rows.append({"time_s": now, "watermark_s": mark, "written_to_s": job.done_to(now),
                     "behind_s": min(now, options.seconds) - job.done_to(now), "waiting_singles": job.waiting(now),
                     "parts": sum(part.done <= now for part in job.parts), "state": state_at(job, now)})
    missing = [{"host": host.number, "from_s": host.end, "to_s": max(h.end for h in hosts)}
               for host in hosts if options.partial and host.end < max(h.end for h in hosts)]
    events = [part.done for part in job.parts] + [kill[0] for kill in job.down] + [kill[1] for kill in job.down]
    written = [host.units.written[-1] for host in hosts if host.units.written]
    most_waiting = max((job.waiting(t) for t in {*times, *(b for _, b in job.down), *written, *events[::97]} if t <= end))
    return {"hosts": [{"singles_per_s": host.rate, "delay_s": host.delay, "saved": host.units.sums[-1],
                       "dropped": host.dropped, "memory_bytes": host.most_bytes, "ends_s": host.end} for host in hosts],
            "ranks": [{"singles": singles, "busy_s": busy} for singles, busy in job.work],
            "rank_memory_bytes": job.most_bytes, "most_waiting_singles": most_waiting, "timeline": rows,
            "failures": job.failures, "missing": missing, "finished_s": job.finished_at, "ledger": ledger}
