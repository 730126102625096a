// Who may control the daemon. The kernel identifies the client (SO_PEERCRED, SO_PEERGROUPS); nothing that the
// client sends counts.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

namespace petacq::daemon {

/// Name of a user; the number of one without a name.
std::string user_name(uid_t uid);
/// Id of a group by its name; nothing if there is no such group.
std::optional<gid_t> group_id(const std::string& name);

/// Root, the daemon's own user and the members of one group may control. Any other client that can connect
/// may read the status.
struct ControlAccess {
    std::string group;
    std::optional<gid_t> gid;  ///< absent: the group does not exist

    /// Whether the client of a connected socket may control. Cheap: looks up no names.
    [[nodiscard]] bool allows(int socket) const;
    /// Why the client of a connected socket may not control, such as "user bob is not in group petacq"; "" if
    /// it may. The groups are those that the client had when it connected. Looks up the name of a user that
    /// it refuses.
    [[nodiscard]] std::string refusal(int socket) const;
};

}  // namespace petacq::daemon
