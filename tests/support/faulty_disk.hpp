// A disk that fails on purpose.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "daemon/system/file.hpp"

namespace petacq::test {

/// The system calls with which this process writes files; replace them through `->`. The destructor restores
/// the real ones; every writing thread must have ended by then.
class FaultyDisk {
  public:
    FaultyDisk() = default;
    ~FaultyDisk() { daemon::file_calls() = real_; }
    FaultyDisk(const FaultyDisk&) = delete;
    FaultyDisk& operator=(const FaultyDisk&) = delete;

    daemon::FileCalls* operator->() { return &daemon::file_calls(); }

    /// The disk takes that many bytes, the last ones in a short write, and is then full.
    void take(std::size_t bytes) {
        daemon::file_calls().write = [left = bytes](int file, const iovec* pieces, int) mutable -> ssize_t {
            if (left == 0) {
                errno = ENOSPC;
                return -1;
            }
            const ssize_t wrote = ::write(file, pieces->iov_base, std::min(pieces->iov_len, left));
            if (wrote > 0) left -= static_cast<std::size_t>(wrote);
            return wrote;
        };
    }

  private:
    const daemon::FileCalls real_ = daemon::file_calls();
};

}  // namespace petacq::test
