#include "tools/petlm/union/second_sums.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <span>
#include <string>
#include <system_error>
#include <vector>

#include "tools/petlm/base/status.hpp"
#include "tools/petlm/resort/parts/part.hpp"

namespace petacq::petlm {

SecondSums::SecondSums(const std::filesystem::path& directory, const config::Geometry& geometry,
                       std::uint64_t ticks_per_s)
    : directory_(directory), geometry_(geometry), ticks_per_s_(ticks_per_s) {
    const std::filesystem::path file = own_partial(directory / "sums");
    file_.open(file, std::ios::in | std::ios::out | std::ios::binary | std::ios::trunc);
    check(file_.good());
    std::filesystem::remove(file);
}

void SecondSums::add(const ShardSums& shard) {
    all_.taken += shard.taken;
    all_.counts += shard.counts;
    for (const auto& [time, sums] : shard.sums) {
        if (open_ && open_->first / ticks_per_s_ == time / ticks_per_s_) {
            open_->second += sums;
            continue;
        }
        write();
        open_.emplace(time, sums);
    }
}

void SecondSums::take(const std::function<void(ShardSums&)>& use) {
    write();
    file_.seekg(0);
    std::vector<std::byte> bytes;
    for (std::uint64_t size = 0; file_.read(reinterpret_cast<char*>(&size), sizeof size);) {
        bytes.resize(size);
        check(file_.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(size)).good());
        auto state = decode(bytes, geometry_);
        if (!state)
            throw BadInput(directory_.string() + ": the disk has spoilt sums of seconds; start again");
        use(*state);
    }
    use(all_);
}

void SecondSums::write() {
    if (!open_) return;
    PartState state;
    state.sums.push_back(std::move(*open_));
    open_.reset();
    const std::vector<std::byte> bytes = encode(state);
    const std::uint64_t size = bytes.size();
    file_.write(reinterpret_cast<const char*>(&size), sizeof size);
    file_.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(size));
    check(file_.good());
}

void SecondSums::check(bool good) const {
    if (!good)
        throw std::system_error(errno, std::generic_category(),
                                directory_.string() + ": a file for sums of seconds");
}

}  // namespace petacq::petlm
