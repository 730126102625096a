// The file system below the data directory: what has not been synced, faults, and power cuts.
//
// The files lie on a memory file system. Every change is logged until it is synced: that of a file's content
// by a sync of the file, that of a name by a sync of its directory (POSIX promises no more). A power cut
// takes back a part of what is in the log: of the names those after some moment, of a file's writes by one of
// several rules.
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/simulation/preload/random.hpp"

namespace petacq::simulation {

class Disk {
  public:
    /// `directory`: its files are on this disk. The rest are faults that tests plant: syncs of files or of
    /// directories do nothing.
    Disk(std::string directory, std::uint64_t seed, bool forgets_writes, bool forgets_names);

    [[nodiscard]] bool holds(const std::string& path) const;

    // The calls of the daemon are reported here. Paths are absolute.
    void opened(int fd, const std::string& path, bool created);
    void closed(int fd) { open_.erase(fd); }
    /// A write, or a truncation (no data), about to happen.
    void will_write(int fd, off_t at, const iovec* pieces, int count);
    void will_truncate(int fd, off_t size);
    void synced(int fd);
    void made(const std::string& path);
    void will_rename(const std::string& from, const std::string& to);
    void will_remove(const std::string& path);

    [[nodiscard]] bool has(int fd) const { return open_.count(fd) != 0; }

    /// Faults until these times.
    std::int64_t full_until_ns = 0;
    std::int64_t failing_until_ns = 0;
    std::int64_t not_syncing_until_ns = 0;
    std::int64_t slow_until_ns = 0;
    std::int64_t slow_ns = 0;  ///< what each call takes while it is slow

    /// Takes back what a power cut takes.
    void lose_power();

  private:
    struct Change;
    struct Content;
    /// A change of names.
    struct Name {
        enum class What { made, renamed, removed } what = What::made;
        std::string path;
        std::string to;    ///< of a rename
        std::string kept;  ///< another name of the file that was removed or replaced; empty: there was none
    };
    struct Opened {
        std::string path;
        std::shared_ptr<Content> content;  ///< none: a directory
    };
    void keep_as(const std::string& path, Name& name);
    void undo_names();
    void undo_writes(Content& content);

    std::string directory_;
    Random random_;
    bool forgets_writes_;
    bool forgets_names_;
    std::map<int, Opened> open_;
    std::vector<std::shared_ptr<Content>> contents_;
    std::vector<Name> names_;  ///< in the order of the changes
    int kept_ = 0;
};

}  // namespace petacq::simulation
