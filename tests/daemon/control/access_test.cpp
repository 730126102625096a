// Who may connect and who may control. Needs root, to act as other users.
#include "daemon/control/access.hpp"

#include <grp.h>
#include <pwd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <functional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "daemon/system/logging.hpp"
#include "tests/daemon/control/fixture.hpp"
#include "tests/support/catch.hpp"

using namespace petacq::daemon;
using namespace petacq::test;
using nlohmann::json;

namespace {

constexpr uid_t nobody = 65534;
constexpr gid_t no_group = 65534;

bool is_root() {
    if (::geteuid() != 0) WARN("not root: nobody else's access can be tried");
    return ::geteuid() == 0;
}

/// A group that every system has.
const std::string some_group = "daemon";
gid_t some_gid() {
    return group_id(some_group).value();
}

/// Runs it in a thread with another user's credentials. Unlike the C library, the raw system calls change one
/// thread only.
void as(uid_t user, gid_t gid, const std::vector<gid_t>& groups, const std::function<void()>& what) {
    std::exception_ptr failure;
    std::thread([&] {
        try {
            if (::syscall(SYS_setgroups, groups.size(), groups.data()) != 0 ||
                ::syscall(SYS_setresgid, gid, gid, gid) != 0 ||
                ::syscall(SYS_setresuid, user, user, user) != 0) {
                throw std::runtime_error("cannot become another user");
            }
            what();
        } catch (...) {
            failure = std::current_exception();
        }
    }).join();
    if (failure) std::rethrow_exception(failure);
}

petacq::config::Control open_to_all(const std::string& group = some_group) {
    return configuration_with({{"control", {{"group", group}, {"socket_mode", "0666"}}}}).control;
}

/// Why a method is refused, or "".
std::string refusal(ControlClient& client, const std::string& method,
                    const json& parameters = json::object()) {
    try {
        client.call(method, parameters);
    } catch (const RpcError& error) {
        CHECK(error.code() == rpc_refused);
        return error.what();
    }
    return "";
}

std::string name_of_nobody() {
    const passwd* entry = ::getpwuid(nobody);
    return entry != nullptr ? entry->pw_name : std::to_string(nobody);
}

}  // namespace

TEST_CASE("access: others may look, and not control", "[control]") {
    if (!is_root()) return;
    TestServer server(open_to_all());
    server.open_directory();
    set_log_level(LogLevel::info);
    as(nobody, no_group, {}, [&] {
        ControlClient client(server.socket());
        const std::string expected =
            "not allowed: user " + name_of_nobody() + " is not in group " + some_group;
        CHECK(client.call("status")["state"] == "idle");
        CHECK(client.call("subscribe", {{"interval_s", 60}})["state"] == "idle");
        CHECK(client.call("unsubscribe") == json::object());
        CHECK(refusal(client, "runs").empty());
        CHECK(refusal(client, "ledger").empty());
        CHECK(client.call("log_level") == json{{"level", "info"}});
        CHECK(refusal(client, "start") == expected);
        CHECK(refusal(client, "start", {{"unknown", 5}}) == expected);  // the refusal reveals nothing else
        CHECK(refusal(client, "stop") == expected);
        CHECK(refusal(client, "acknowledge", {{"run", "r"}}) == expected);
        CHECK(refusal(client, "reload") == expected);
        CHECK(refusal(client, "log_level", {{"level", "trace"}}) == expected);
    });
    CHECK(log_level() == LogLevel::info);
    CHECK_FALSE(server.handler.last_start().run.has_value());
    CHECK(server.handler.stops() == 0);
}

TEST_CASE("access: members of the group may control, by whichever of their groups", "[control]") {
    if (!is_root()) return;
    TestServer server(open_to_all());
    server.open_directory();
    std::vector<gid_t> many;
    for (gid_t gid = 70'000; gid < 70'300; ++gid)
        many.push_back(gid);
    many.push_back(some_gid());
    struct Who {
        gid_t gid;
        std::vector<gid_t> groups;
    };
    for (const Who& who : {Who{some_gid(), {}}, Who{no_group, {some_gid()}}, Who{no_group, many}}) {
        as(nobody, who.gid, who.groups, [&] {
            ControlClient client(server.socket());
            CHECK(client.call("start", {{"run", "mine"}}) == json{{"run", "mine"}});
        });
    }
    many.pop_back();
    as(nobody, no_group, many, [&] {
        ControlClient client(server.socket());
        CHECK(refusal(client, "start").starts_with("not allowed: "));
    });
    // A user without a name, and the daemon's own.
    as(4'000'000, no_group, {}, [&] {
        ControlClient client(server.socket());
        CHECK(refusal(client, "stop") == "not allowed: user 4000000 is not in group " + some_group);
    });
    ControlClient own(server.socket());
    CHECK(refusal(own, "start").empty());
}

TEST_CASE("access: it is the credentials at the time of connecting that count", "[control]") {
    if (!is_root()) return;
    TestServer server(open_to_all());
    ControlClient root(server.socket());
    as(nobody, no_group, {}, [&] { CHECK(refusal(root, "start").empty()); });
}

TEST_CASE("access: without the group only root and the daemon's user may control", "[control]") {
    CHECK_FALSE(group_id("no-such-group").has_value());
    CHECK(group_id("root") == gid_t{0});
    if (!is_root()) return;
    TestServer server(open_to_all("no-such-group"));
    server.open_directory();
    ControlClient own(server.socket());
    CHECK(refusal(own, "start").empty());
    as(nobody, no_group, {some_gid()}, [&] {
        ControlClient client(server.socket());
        CHECK(refusal(client, "start") ==
              "not allowed: user " + name_of_nobody() + " is not root, and there is no group no-such-group");
    });
}

TEST_CASE("access: the socket has the mode and the group it is given", "[control]") {
    if (!is_root()) return;
    for (const std::string text : {"0600", "0660", "0666"}) {
        CAPTURE(text);
        const auto mode = static_cast<mode_t>(std::stoul(text, nullptr, 8));
        TestServer server(
            configuration_with({{"control", {{"group", some_group}, {"socket_mode", text}}}}).control);
        server.open_directory();
        struct stat found {};
        REQUIRE(::stat(server.socket().c_str(), &found) == 0);
        CHECK((found.st_mode & 07777) == mode);
        CHECK(found.st_gid == some_gid());
        const auto connects = [&](gid_t gid) {
            bool connected = true;
            as(nobody, gid, {}, [&] {
                try {
                    const ControlClient client(server.socket());
                } catch (const ControlUnavailable& error) {
                    CHECK(std::string(error.what()).find("Permission denied") != std::string::npos);
                    connected = false;
                }
            });
            return connected;
        };
        CHECK(connects(some_gid()) == (mode != 0600));
        CHECK(connects(no_group) == (mode == 0666));
    }
}

TEST_CASE("access: who may only look keeps nobody out who may control", "[control]") {
    if (!is_root()) return;
    petacq::config::Control options = open_to_all();
    options.max_clients = 3;
    TestServer server(options);
    server.open_directory();
    std::vector<std::unique_ptr<ControlClient>> lookers;
    as(nobody, no_group, {}, [&] {
        for (int i = 0; i < 3; ++i) {
            lookers.push_back(std::make_unique<ControlClient>(server.socket()));
            lookers.back()->call("subscribe", {{"interval_s", 3600}});
        }
    });
    std::vector<std::unique_ptr<ControlClient>> operators;
    for (int i = 0; i < 3; ++i) {
        operators.push_back(std::make_unique<ControlClient>(server.socket()));
        CHECK(operators.back()->call("status")["state"] == "idle");
    }
    // And nobody who may only look takes the place of an idle client that may control.
    as(nobody, no_group, {}, [&] {
        ControlClient late(server.socket());
        CHECK_THROWS_AS(late.call("status"), RpcError);
    });
    CHECK(operators.front()->call("status")["state"] == "idle");
}
