// The multicast groups of a receive socket: joined on an interface, and again when the interface comes back.
#pragma once

#include <netinet/in.h>

#include <string>
#include <vector>

#include "net/base/mutex.hpp"

namespace petacq::net {

struct ReceiverOptions;

/// A group of a receiver, as of a moment ago.
struct Membership {
    std::string group;           ///< its address
    std::string interface_name;  ///< as configured; empty: the system chooses
    std::string trouble;         ///< why its datagrams cannot arrive; empty: it is joined
};

/// One thread at a time, but for published().
class Memberships {
  public:
    /// Joins nothing yet. Throws std::runtime_error if an address is not one of a group, or not of the family
    /// of the socket; its message starts with `what`.
    Memberships(const ReceiverOptions& options, const std::string& what);

    /// Joins what can be joined now on the bound socket. Leaves groups on interfaces that no longer exist.
    /// Takes some microseconds if nothing has changed.
    void refresh(int socket);
    [[nodiscard]] bool empty() const { return groups_.empty(); }
    /// Any thread.
    [[nodiscard]] std::vector<Membership> published() const;

  private:
    struct MulticastGroup {
        std::string text;
        sockaddr_storage address{};
        unsigned joined = 0;  // index of the interface; 0: none
        std::string trouble{};
    };

    void refresh(int socket, MulticastGroup& group);
    void find_interface(const MulticastGroup& group, unsigned& index, std::string& trouble) const;
    [[nodiscard]] std::string join(int socket, const MulticastGroup& group, unsigned index) const;
    void leave(int socket, MulticastGroup& group) const;

    const int level_;  // of the socket options
    const std::string interface_;
    const bool may_be_member_;  // an inherited socket
    std::vector<MulticastGroup> groups_;
    std::vector<sockaddr_storage> sources_;
    mutable Mutex mutex_;
    std::vector<Membership> published_ PETACQ_GUARDED_BY(mutex_);
};

}  // namespace petacq::net
