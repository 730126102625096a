#include "daemon/service/space_watch.hpp"

#include <boost/asio/post.hpp>
#include <utility>

namespace petacq::daemon {

namespace {

/// A disk that has not told its free space after this time is shown as unknown.
constexpr std::chrono::seconds patience{5};

}  // namespace

SpaceWatch::SpaceWatch(boost::asio::io_context& io, std::function<void(std::optional<DiskSpace>)> listener)
    : io_(io), listener_(std::move(listener)) {}

void SpaceWatch::look(const std::filesystem::path& directory) {
    const auto now = std::chrono::steady_clock::now();
    if (asked_) {
        if (now - *asked_ > patience) listener_(std::nullopt);
        return;
    }
    asked_ = now;
    boost::asio::post(thread_, [this, directory] {
        boost::asio::post(io_, [this, space = disk_space(directory)] {
            asked_.reset();
            listener_(space);
        });
    });
}

}  // namespace petacq::daemon
