#include "daemon/control/access.hpp"

#include <grp.h>
#include <pwd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <vector>

namespace petacq::daemon {

namespace {

/// A large group needs a large buffer; beyond this size the lookup fails.
constexpr std::size_t largest_entry = 1U << 20;

/// Calls one of the get..._r() functions with as much memory as it needs; false if there is no such entry.
template <class Entry, class Lookup>
bool look_up(Entry& entry, std::vector<char>& memory, Lookup lookup) {
    Entry* found = nullptr;
    int error = ERANGE;
    for (memory.resize(1024); error == ERANGE && memory.size() <= largest_entry;) {
        error = lookup(&entry, memory.data(), memory.size(), &found);
        if (error == ERANGE) memory.resize(2 * memory.size());
    }
    return error == 0 && found != nullptr;
}

bool identify(int socket, ucred& peer) {
    socklen_t bytes = sizeof peer;
    return ::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0;
}

/// Supplementary groups of the client; empty if the kernel does not tell.
std::vector<gid_t> groups_of(int socket) {
    std::vector<gid_t> groups(64);
    auto bytes = static_cast<socklen_t>(groups.size() * sizeof(gid_t));
    int result = ::getsockopt(socket, SOL_SOCKET, SO_PEERGROUPS, groups.data(), &bytes);
    if (result != 0 && errno == ERANGE) {  // bytes is now the size needed
        groups.resize(bytes / sizeof(gid_t));
        result = ::getsockopt(socket, SOL_SOCKET, SO_PEERGROUPS, groups.data(), &bytes);
    }
    groups.resize(result == 0 ? bytes / sizeof(gid_t) : 0);
    return groups;
}

}  // namespace

std::string user_name(uid_t uid) {
    passwd entry{};
    std::vector<char> memory;
    const bool found = look_up(entry, memory, [&](passwd* e, char* m, std::size_t n, passwd** f) {
        return ::getpwuid_r(uid, e, m, n, f);
    });
    return found ? entry.pw_name : std::to_string(uid);
}

std::optional<gid_t> group_id(const std::string& name) {
    group entry{};
    std::vector<char> memory;
    const bool found = look_up(entry, memory, [&](group* e, char* m, std::size_t n, group** f) {
        return ::getgrnam_r(name.c_str(), e, m, n, f);
    });
    if (!found) return std::nullopt;
    return entry.gr_gid;
}

bool ControlAccess::allows(int socket) const {
    ucred peer{};
    if (!identify(socket, peer)) return false;
    if (peer.uid == 0 || peer.uid == ::geteuid()) return true;
    if (!gid) return false;
    const std::vector<gid_t> groups = groups_of(socket);
    return peer.gid == *gid || std::find(groups.begin(), groups.end(), *gid) != groups.end();
}

std::string ControlAccess::refusal(int socket) const {
    if (allows(socket)) return "";
    ucred peer{};
    if (!identify(socket, peer))
        return "the kernel does not identify the client: " + std::generic_category().message(errno);
    if (!gid) return "user " + user_name(peer.uid) + " is not root, and there is no group " + group;
    return "user " + user_name(peer.uid) + " is not in group " + group;
}

}  // namespace petacq::daemon
