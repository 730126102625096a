#include "daemon/placement/machine.hpp"

#include <hwloc.h>

#include <algorithm>
#include <cerrno>
#include <new>
#include <system_error>

namespace petacq::daemon {

namespace {

class Bitmap {
  public:
    Bitmap() : bits_(hwloc_bitmap_alloc()) {
        if (bits_ == nullptr) throw std::bad_alloc();
    }
    explicit Bitmap(const net::Cores& cores) : Bitmap() {
        for (const int core : cores)
            hwloc_bitmap_set(bits_, static_cast<unsigned>(core));
    }
    ~Bitmap() { hwloc_bitmap_free(bits_); }
    Bitmap(const Bitmap&) = delete;
    Bitmap& operator=(const Bitmap&) = delete;
    operator hwloc_bitmap_t() const { return bits_; }  // NOLINT(google-explicit-constructor)

    [[nodiscard]] net::Cores cores() const {
        net::Cores all;
        for (int core = -1; (core = hwloc_bitmap_next(bits_, core)) >= 0;)
            all.push_back(core);
        return all;
    }

  private:
    hwloc_bitmap_t bits_;
};

/// A place is a part of the machine with processors; nullptr: not known.
class Plan {
  public:
    Plan(hwloc_topology_t topology, const PlacementWish& wish) : topology_(topology) {
        hwloc_bitmap_copy(allowed_, hwloc_topology_get_allowed_cpuset(topology));
        const Bitmap bound;
        if (hwloc_topology_is_thissystem(topology) != 0 &&
            hwloc_get_cpubind(topology, bound, HWLOC_CPUBIND_THREAD) == 0)
            hwloc_bitmap_and(allowed_, allowed_, bound);
        for (const PlacementWish::Receiver& receiver : wish.receivers) {
            receivers_.push_back(receiver.cores.empty() ? at_interfaces(receiver.interfaces)
                                                        : around_cores(receiver.cores));
            const Bitmap given(receiver.cores);
            hwloc_bitmap_or(given_, given_, given);
        }
        hwloc_obj_t together = receivers_.empty() ? nullptr : receivers_.front();
        for (hwloc_obj_t place : receivers_)
            together = common(together, place);
        const hwloc_obj_t gpu = wish.gpu.empty() ? nullptr : at_gpu(wish.gpu);

        Placement& p = placement_;
        std::size_t chosen = 0;
        for (std::size_t i = 0; i < receivers_.size(); ++i) {
            const bool given = !wish.receivers[i].cores.empty();
            chosen += given ? 0 : 1;
            p.receivers.push_back(given ? wish.receivers[i].cores
                                        : cores_around(receivers_[i], static_cast<std::size_t>(std::count(
                                                                          receivers_.begin(),
                                                                          receivers_.end(), receivers_[i]))));
        }
        p.acquisition = cores_around(together, chosen + 1);
        p.pool = cores_of(together);
        if (p.pool.empty()) p.pool = cores_of(gpu);
        const bool beside = gpu != nullptr && together != nullptr &&
                            hwloc_bitmap_intersects(gpu->cpuset, together->cpuset) != 0;
        p.results = cores_around(gpu, wish.result_threads + (beside ? chosen + 1 : 0));
    }

    [[nodiscard]] const Placement& placement() const { return placement_; }

  private:
    [[nodiscard]] hwloc_obj_t common(hwloc_obj_t a, hwloc_obj_t b) const {
        return a == nullptr || b == nullptr ? nullptr : hwloc_get_common_ancestor_obj(topology_, a, b);
    }

    /// Around all of them that are devices of this machine.
    [[nodiscard]] hwloc_obj_t at_interfaces(const std::vector<std::string>& names) const {
        hwloc_obj_t found = nullptr;
        for (hwloc_obj_t device = nullptr; (device = hwloc_get_next_osdev(topology_, device)) != nullptr;) {
            if (device->attr->osdev.type != HWLOC_OBJ_OSDEV_NETWORK || device->name == nullptr) continue;
            if (std::find(names.begin(), names.end(), device->name) == names.end()) continue;
            const hwloc_obj_t place = hwloc_get_non_io_ancestor_obj(topology_, device);
            found = found == nullptr ? place : common(found, place);
        }
        return found;
    }

    [[nodiscard]] hwloc_obj_t at_gpu(const std::string& address) const {
        const hwloc_obj_t device = hwloc_get_pcidev_by_busidstring(topology_, address.c_str());
        return device == nullptr ? nullptr : hwloc_get_non_io_ancestor_obj(topology_, device);
    }

    /// At least a NUMA node.
    [[nodiscard]] hwloc_obj_t around_cores(const net::Cores& cores) const {
        const Bitmap set(cores);
        hwloc_obj_t place = hwloc_get_obj_covering_cpuset(topology_, set);
        while (place != nullptr && place->memory_arity == 0)
            place = place->parent;
        return place;
    }

    /// Those of the place that the program may use; none if these are all.
    [[nodiscard]] net::Cores cores_of(hwloc_obj_t place) const {
        if (place == nullptr || hwloc_bitmap_isincluded(allowed_, place->cpuset) != 0) return {};
        const Bitmap set;
        hwloc_bitmap_and(set, allowed_, place->cpuset);
        return set.cores();
    }

    /// The same without cores that the operator gave to receivers, in the smallest part around the place with
    /// that many physical cores.
    [[nodiscard]] net::Cores cores_around(hwloc_obj_t place, std::size_t threads) const {
        for (; place != nullptr && hwloc_bitmap_isincluded(allowed_, place->cpuset) == 0;
             place = place->parent) {
            const Bitmap set;
            hwloc_bitmap_and(set, allowed_, place->cpuset);
            hwloc_bitmap_andnot(set, set, given_);
            if (physical_cores(set) >= threads) return set.cores();
        }
        return {};
    }

    [[nodiscard]] std::size_t physical_cores(const Bitmap& set) const {
        std::size_t cores = 0;
        for (hwloc_obj_t core = nullptr;
             (core = hwloc_get_next_obj_by_type(topology_, HWLOC_OBJ_CORE, core)) != nullptr;)
            cores += hwloc_bitmap_intersects(core->cpuset, set) != 0 ? 1U : 0U;
        // Some machines do not tell their cores.
        return cores != 0 ? cores : static_cast<std::size_t>(hwloc_bitmap_weight(set));
    }

    hwloc_topology_t topology_;
    Bitmap allowed_;
    Bitmap given_;
    std::vector<hwloc_obj_t> receivers_;
    Placement placement_;
};

}  // namespace

void Machine::Free::operator()(hwloc_topology* topology) const {
    hwloc_topology_destroy(topology);
}

Placement unplaced(const PlacementWish& wish) {
    Placement placement;
    for (const PlacementWish::Receiver& receiver : wish.receivers)
        placement.receivers.push_back(receiver.cores);
    return placement;
}

Machine::Machine() {
    const auto check = [](int result) {
        if (result != 0) throw std::system_error(errno, std::generic_category(), "looking at the machine");
    };
    hwloc_topology_t topology = nullptr;
    check(hwloc_topology_init(&topology));
    topology_.reset(topology);
    // hwloc finds where a device is without asking its driver.
    for (const char* driver : {"cuda", "nvml", "rsmi", "levelzero", "opencl", "gl"})
        hwloc_topology_set_components(topology, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, driver);
    check(hwloc_topology_set_io_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_IMPORTANT));
    check(hwloc_topology_set_flags(topology, HWLOC_TOPOLOGY_FLAG_DONT_CHANGE_BINDING));
    check(hwloc_topology_load(topology));
}

Machine::~Machine() = default;

bool Machine::divided() const {
    const hwloc_const_cpuset_t all = hwloc_topology_get_topology_cpuset(topology_.get());
    for (hwloc_obj_t node = nullptr;
         (node = hwloc_get_next_obj_by_type(topology_.get(), HWLOC_OBJ_NUMANODE, node)) != nullptr;) {
        // Some have memory alone.
        if (hwloc_bitmap_iszero(node->cpuset) == 0 && hwloc_bitmap_isincluded(all, node->cpuset) == 0)
            return true;
    }
    return false;
}

Placement Machine::place(const PlacementWish& wish) const {
    return Plan(topology_.get(), wish).placement();
}

}  // namespace petacq::daemon
