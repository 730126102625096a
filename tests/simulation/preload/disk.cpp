#include "tests/simulation/preload/disk.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <string_view>

#include "tests/simulation/preload/real.hpp"

namespace petacq::simulation {

namespace {

constexpr std::size_t page = 4096;

std::string parent_of(const std::string& path) {
    return path.substr(0, path.rfind('/'));
}

}  // namespace

/// A write, or a truncation without data.
struct Disk::Change {
    std::size_t at = 0;
    std::string data;
    std::size_t size_before = 0;
    std::size_t size_after = 0;
    std::string before;  ///< what stood there
};

struct Disk::Content {
    int fd = -1;  ///< ours
    std::vector<Change> unsynced;

    [[nodiscard]] std::size_t size() const {
        struct stat s {};
        ::fstat(fd, &s);
        return static_cast<std::size_t>(s.st_size);
    }
    /// The bytes of the file there. Empty if that part of the file is a hole, as reserved room is.
    [[nodiscard]] std::string read(std::size_t at, std::size_t bytes) const {
        const std::size_t end = std::min(size(), at + bytes);
        const off_t data = end > at ? ::lseek(fd, static_cast<off_t>(at), SEEK_DATA) : -1;
        if (data < 0 || static_cast<std::size_t>(data) >= end) return {};
        std::string out(end - at, '\0');
        const ssize_t n = ::pread(fd, out.data(), out.size(), static_cast<off_t>(at));
        out.resize(static_cast<std::size_t>(std::max<ssize_t>(0, n)));
        return out;
    }
    void put(std::size_t at, std::string_view bytes) const {
        PETACQ_REAL(pwrite);
        if (real_pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(at)) !=
            static_cast<ssize_t>(bytes.size()))
            __builtin_trap();
    }
    void resize(std::size_t bytes) const {
        PETACQ_REAL(ftruncate);
        if (real_ftruncate(fd, static_cast<off_t>(bytes)) != 0) __builtin_trap();
    }
};

Disk::Disk(std::string directory, std::uint64_t seed, bool forgets_writes, bool forgets_names)
    : directory_(std::move(directory)),
      random_(seed),
      forgets_writes_(forgets_writes),
      forgets_names_(forgets_names) {
    if (!directory_.empty()) ::mkdir((directory_ + ".kept").c_str(), 0777);
}

bool Disk::holds(const std::string& path) const {
    return !directory_.empty() && path.compare(0, directory_.size(), directory_) == 0 &&
           (path.size() == directory_.size() || path[directory_.size()] == '/');
}

void Disk::opened(int fd, const std::string& path, bool created) {
    struct stat s {};
    if (::fstat(fd, &s) != 0) return;
    if (S_ISDIR(s.st_mode)) {
        open_[fd] = {path, nullptr};
        return;
    }
    if (!S_ISREG(s.st_mode)) return;
    PETACQ_REAL(open);
    auto content = std::make_shared<Content>();
    content->fd = real_open(path.c_str(), O_RDWR | O_CLOEXEC);
    contents_.push_back(content);
    open_[fd] = {path, content};
    if (created) made(path);
}

void Disk::will_write(int fd, off_t at, const iovec* pieces, int count) {
    Content& content = *open_.at(fd).content;
    Change change;
    change.at = static_cast<std::size_t>(at);
    for (int i = 0; i < count; ++i)
        change.data.append(static_cast<const char*>(pieces[i].iov_base), pieces[i].iov_len);
    change.size_before = content.size();
    change.size_after = std::max(change.size_before, change.at + change.data.size());
    change.before = content.read(change.at, change.data.size());
    content.unsynced.push_back(std::move(change));
}

void Disk::will_truncate(int fd, off_t size) {
    Content& content = *open_.at(fd).content;
    Change change;
    change.at = static_cast<std::size_t>(size);
    change.size_before = content.size();
    change.size_after = change.at;
    if (change.size_before > change.at)
        change.before = content.read(change.at, change.size_before - change.at);
    content.unsynced.push_back(std::move(change));
}

void Disk::synced(int fd) {
    Opened& file = open_.at(fd);
    if (file.content != nullptr) {
        if (!forgets_writes_) file.content->unsynced.clear();
        return;
    }
    if (forgets_names_) return;
    const auto in_it = [&](const Name& n) {
        if (parent_of(n.path) != file.path) return false;
        std::error_code ignored;
        if (!n.kept.empty()) std::filesystem::remove(n.kept, ignored);
        return true;
    };
    names_.erase(std::remove_if(names_.begin(), names_.end(), in_it), names_.end());
}

void Disk::made(const std::string& path) {
    names_.push_back({Name::What::made, path, {}, {}});
}

void Disk::keep_as(const std::string& path, Name& name) {
    const std::string kept = directory_ + ".kept/" + std::to_string(kept_++);
    PETACQ_REAL(link);
    if (real_link(path.c_str(), kept.c_str()) == 0) name.kept = kept;
}

void Disk::will_rename(const std::string& from, const std::string& to) {
    Name name{Name::What::renamed, from, to, {}};
    keep_as(to, name);
    names_.push_back(std::move(name));
}

void Disk::will_remove(const std::string& path) {
    Name name{Name::What::removed, path, {}, {}};
    keep_as(path, name);
    if (!name.kept.empty()) names_.push_back(std::move(name));
}

void Disk::undo_names() {
    const std::size_t survive = random_.below(names_.size() + 1);
    std::error_code ignored;
    while (names_.size() > survive) {
        const Name& n = names_.back();
        if (n.what == Name::What::made) std::filesystem::remove_all(n.path, ignored);
        if (n.what == Name::What::renamed) std::filesystem::rename(n.to, n.path, ignored);
        if (!n.kept.empty())
            std::filesystem::rename(n.kept, n.what == Name::What::renamed ? n.to : n.path, ignored);
        names_.pop_back();
    }
}

void Disk::undo_writes(Content& content) {
    std::vector<Change>& changes = content.unsynced;
    if (changes.empty()) return;
    for (auto c = changes.rbegin(); c != changes.rend(); ++c) {
        content.resize(c->size_before);
        content.put(c->at, c->before);
        content.resize(c->size_before);
    }
    // 0: nothing survives; 1: all; 2: the first ones, the last of them torn; 3: any pages of any of them
    const std::uint64_t rule = random_.below(4);
    const std::size_t first = rule == 0 ? 0 : rule == 2 ? random_.below(changes.size()) : changes.size();
    for (std::size_t i = 0; i < first; ++i) {
        const Change& c = changes[i];
        const std::string_view data = c.data;
        content.resize(c.size_after);
        for (std::size_t at = 0; at < data.size();) {
            const std::size_t n = std::min(data.size() - at, page - (c.at + at) % page);
            if (rule != 3 || random_.below(2) == 0) content.put(c.at + at, data.substr(at, n));
            at += n;
        }
    }
    if (rule == 2 && !changes[first].data.empty()) {
        const std::string_view torn = changes[first].data;
        content.put(changes[first].at, torn.substr(0, random_.below(torn.size())));
    }
}

void Disk::lose_power() {
    for (const auto& content : contents_)
        undo_writes(*content);
    undo_names();
}

}  // namespace petacq::simulation
