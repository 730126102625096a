// A machine of several NUMA nodes, as hwloc would find it.
#pragma once

#include <fmt/format.h>
#include <stdlib.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tests/support/files.hpp"
#include "tests/support/temporary_directory.hpp"

namespace petacq::test {

/// While it lives, this program and those that it starts see that machine instead of the host. Processor i is
/// core i; the nodes have as many each, one after the other.
class MadeMachine {
  public:
    struct Device {
        std::string name;  ///< of a network interface, or the PCI address of a GPU
        unsigned node;
    };
    /// `of_host`: its processors are those of the host, so that threads can be bound to them.
    MadeMachine(unsigned nodes, unsigned cores_of_node, const std::vector<Device>& devices,
                bool of_host = false) {
        const unsigned cores = nodes * cores_of_node;
        std::string text = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<topology version=\"2.0\">\n";
        text += object("Machine", 0, bits(0, cores), bits(0, nodes)) + ">\n";
        for (unsigned node = 0; node < nodes; ++node) {
            const std::string nodeset = bits(node, 1);
            const std::string cpuset = bits(node * cores_of_node, cores_of_node);
            text += object("Package", node, cpuset, nodeset) + ">\n";
            text += object("NUMANode", node, cpuset, nodeset) + " local_memory=\"1073741824\"/>\n";
            for (unsigned core = node * cores_of_node; core < (node + 1) * cores_of_node; ++core) {
                text += object("Core", core, bits(core, 1), nodeset) + ">\n";
                text += object("PU", core, bits(core, 1), nodeset) + "/>\n</object>\n";
            }
            for (const Device& device : devices)
                if (device.node == node) text += device_object(device);
            text += "</object>\n";
        }
        text += "</object>\n</topology>\n";
        write_file(directory_ / "machine.xml", text);
        ::setenv("HWLOC_XMLFILE", (directory_ / "machine.xml").c_str(), 1);
        ::setenv("HWLOC_THISSYSTEM", of_host ? "1" : "0", 1);
    }
    ~MadeMachine() {
        ::unsetenv("HWLOC_XMLFILE");
        ::unsetenv("HWLOC_THISSYSTEM");
    }
    MadeMachine(const MadeMachine&) = delete;
    MadeMachine& operator=(const MadeMachine&) = delete;

  private:
    /// At most 32 in all.
    static std::string bits(unsigned first, unsigned count) {
        return fmt::format("0x{:08x}", ((std::uint64_t{1} << count) - 1) << first);
    }
    std::string object(const char* type, unsigned index, const std::string& cpuset,
                       const std::string& nodeset) {
        return fmt::format(
            R"(<object type="{}" os_index="{}" gp_index="{}" cpuset="{}" complete_cpuset="{}" allowed_cpuset="{}" )"
            R"(nodeset="{}" complete_nodeset="{}" allowed_nodeset="{}")",
            type, index, ++objects_, cpuset, cpuset, cpuset, nodeset, nodeset, nodeset);
    }
    std::string device_object(const Device& device) {
        ++objects_;
        if (device.name.find(':') == std::string::npos) {
            return fmt::format("<object type=\"OSDev\" gp_index=\"{}\" name=\"{}\" osdev_type=\"2\"/>\n",
                               objects_, device.name);
        }
        return fmt::format(
            "<object type=\"PCIDev\" gp_index=\"{}\" pci_busid=\"{}\" pci_type=\"0302 "
            "[10de:2330] [10de:16c1] a1\" pci_link_speed=\"0.000000\"/>\n",
            objects_, device.name);
    }

    TemporaryDirectory directory_;
    unsigned objects_ = 0;
};

}  // namespace petacq::test
