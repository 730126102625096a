// The file .reserve of a run directory.
//
// It exists from the start of a run until run.json is final, and its writer has locked it. The kernel drops
// the lock when the process ends, however it ends: a .reserve that nobody has locked is that of an
// interrupted run. Meanwhile it keeps room for the final run.json on a full disk.
#pragma once

#include <cstdint>
#include <filesystem>

#include "daemon/system/file.hpp"

namespace petacq::daemon {

inline constexpr const char* reserve_file = ".reserve";

class RunReserve {
  public:
    static constexpr std::uint64_t room = 4U << 20U;

    /// Creates, locks and fills the file; throws std::system_error.
    explicit RunReserve(const std::filesystem::path& directory);
    /// Gives the room back. The run still counts as being written.
    void make_room() noexcept { file_.empty(); }
    /// run.json is final.
    void remove() noexcept { file_.discard(); }

  private:
    File file_;
};

/// Whether a process has locked the .reserve of the directory.
bool is_being_written(const std::filesystem::path& directory);

}  // namespace petacq::daemon
