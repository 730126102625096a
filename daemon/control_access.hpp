// Who may control the daemon. The kernel says who connected (SO_PEERCRED, SO_PEERGROUPS); nothing that a
// client sends is believed.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

namespace petacq::daemon {

/// Id of a group by its name; nothing when there is no such group.
std::optional<gid_t> group_id(const std::string& name);

/// root, the daemon's own user and the members of one group may control; everybody else who can connect may
/// look.
struct ControlAccess {
    std::string group;
    std::optional<gid_t> gid;  ///< absent: the group does not exist

    /// Why whoever is at the other end of the connected socket may not control, such as "user bob is not in
    /// group petacq"; "" when he may. His groups are those at the time he connected. May look up the user's
    /// name, when it refuses.
    [[nodiscard]] std::string refusal(int socket) const;
};

}  // namespace petacq::daemon
