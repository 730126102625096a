// Asks for the free space of the disk in a thread of its own, because a disk may take any time.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/thread_pool.hpp>

#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>

#include "daemon/space/disk_space.hpp"

namespace petacq::daemon {

/// The thread that runs the io_context uses it.
class SpaceWatch {
  public:
    /// `listener` gets the space, and nothing while the disk does not answer. `io` outlives this object.
    SpaceWatch(boost::asio::io_context& io, std::function<void(std::optional<DiskSpace>)> listener);

    /// Asks for the space at `directory`, unless the latest question has not been answered.
    void look(const std::filesystem::path& directory);

  private:
    boost::asio::io_context& io_;
    const std::function<void(std::optional<DiskSpace>)> listener_;
    std::optional<std::chrono::steady_clock::time_point> asked_;  ///< absent: it has answered
    boost::asio::thread_pool thread_{1};
};

}  // namespace petacq::daemon
