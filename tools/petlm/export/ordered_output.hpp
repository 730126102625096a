// A large file whose pieces are made in parallel and written in their order.
#pragma once

#include <string>
#include <vector>

#include "daemon/system/progress_line.hpp"
#include "net/base/worker_pool.hpp"
#include "tools/petlm/reconstruction/projector/for_each_on.hpp"
#include "tools/petlm/records/output.hpp"

namespace petacq::petlm {

/// make(i, bytes) appends piece i, for i below `count`, to its bytes; it is called by several threads at
/// once.
template <class Make>
void write_in_order(OutputFile& out, net::WorkerPool& pool, std::size_t count, const std::string& activity,
                    const Make& make) {
    const std::size_t at_once = 8 * std::size_t{pool.size()};
    std::vector<std::string> pieces(at_once);
    daemon::ProgressLine progress(activity, count, daemon::ProgressUnit::steps);
    for (std::size_t first = 0; first < count; first += at_once) {
        const std::size_t n = std::min(at_once, count - first);
        image::for_each_on(pool, n, [&](std::size_t i) {
            pieces[i].clear();
            make(first + i, pieces[i]);
        });
        for (std::size_t i = 0; i < n; ++i)
            out.text(pieces[i]);
        progress.show(first + n);
    }
}

/// Appends a value as it is in memory.
template <class Value>
void append(std::string& bytes, Value value) {
    bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

}  // namespace petacq::petlm
