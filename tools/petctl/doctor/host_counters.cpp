#include "tools/petctl/doctor/host_counters.hpp"

#include <fstream>
#include <sstream>

namespace petacq::petctl {

namespace {

/// Pairs of lines: "Udp: InDatagrams NoPorts", "Udp: 5 0".
void read_pairs(const char* path, HostCounters& counters) {
    std::ifstream file(path);
    std::string names;
    std::string values;
    while (std::getline(file, names) && std::getline(file, values)) {
        std::istringstream name_words(names);
        std::istringstream value_words(values);
        std::string section;
        std::string word;
        name_words >> section;
        value_words >> word;
        if (section.empty() || section != word) return;
        section.pop_back();  // the colon
        double value = 0;
        while (name_words >> word && value_words >> value)
            counters[section + word] = value;
    }
}

/// "  eth0: bytes packets ...", below two lines of titles.
void read_interfaces(HostCounters& counters) {
    std::ifstream file("/proc/net/dev");
    std::string line;
    while (std::getline(file, line)) {
        const std::size_t colon = line.find(':');
        if (colon == std::string::npos) continue;
        std::istringstream values(line.substr(colon + 1));
        const std::size_t begin = line.find_first_not_of(' ');
        double bytes = 0;
        double packets = 0;
        if (values >> bytes >> packets) counters[line.substr(begin, colon - begin)] = packets;
    }
}

}  // namespace

HostCounters read_host_counters() {
    HostCounters counters;
    read_pairs("/proc/net/snmp", counters);
    read_pairs("/proc/net/netstat", counters);
    read_interfaces(counters);
    return counters;
}

HostCounters growth(const HostCounters& before, const HostCounters& after) {
    HostCounters grown;
    for (const auto& [name, value] : after) {
        const auto earlier = before.find(name);
        if (earlier != before.end() && value > earlier->second) grown[name] = value - earlier->second;
    }
    return grown;
}

}  // namespace petacq::petctl
