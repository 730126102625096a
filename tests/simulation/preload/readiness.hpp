// Which epoll descriptors may have something to report. To ask the kernel costs more than all the rest of a
// wait.
#pragma once

#include <cstdint>
#include <vector>

namespace petacq::simulation {

class Readiness {
  public:
    /// An eventfd: a write to it makes nothing else ready.
    void made_eventfd(int descriptor) { of(descriptor).is_eventfd = true; }
    void watched(int epoll, int descriptor) {
        of(descriptor).epoll = epoll;
        of(epoll).changed = true;
    }
    void closed(int descriptor) {
        of(descriptor) = {};
        changed();
    }

    /// This one may have become ready; if it is no eventfd, what hangs on it may, too.
    void changed(int descriptor) {
        const Descriptor& d = of(descriptor);
        if (!d.is_eventfd) return changed();
        if (d.epoll >= 0) of(d.epoll).changed = true;
    }
    /// Any may.
    void changed() {
        for (Descriptor& d : all_)
            d.changed = true;
    }

    [[nodiscard]] bool may_report(int epoll) { return of(epoll).changed; }
    /// It has been asked, and has nothing.
    void reports_nothing(int epoll) { of(epoll).changed = false; }

  private:
    struct Descriptor {
        int epoll = -1;  ///< by which it is watched
        bool is_eventfd = false;
        bool changed = true;  ///< of an epoll descriptor
    };
    Descriptor& of(int descriptor) {
        const auto at = static_cast<std::size_t>(descriptor);
        if (at >= all_.size()) all_.resize(at + 1);
        return all_[at];
    }
    std::vector<Descriptor> all_;
};

}  // namespace petacq::simulation
