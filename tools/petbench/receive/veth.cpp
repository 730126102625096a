#include "tools/petbench/receive/veth.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/ethtool.h>
#include <linux/if_link.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <linux/veth.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <system_error>

namespace petacq::bench {

namespace {

constexpr std::size_t ip_and_udp_headers = 28;
constexpr std::size_t ethernet_mtu = 1500;

void check(bool good, const std::string& what) {
    if (good) return;
    const int error = errno;
    const char* const hint = error == EPERM ? "; --veth needs root (CAP_SYS_ADMIN and CAP_NET_ADMIN)" : "";
    throw std::system_error(error, std::generic_category(), "veth: " + what + hint);
}

/// A descriptor of the namespace in which the calling thread is.
int present_namespace() {
    const int descriptor = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
    check(descriptor >= 0, "/proc/thread-self/ns/net");
    return descriptor;
}

struct Socket {
    Socket(int domain, int type, int protocol) : fd(socket(domain, type | SOCK_CLOEXEC, protocol)) {
        check(fd >= 0, "socket");
    }
    ~Socket() { close(fd); }
    Socket(const Socket&) = delete;
    Socket& operator=(const Socket&) = delete;
    const int fd;
};

/// A request of rtnetlink(7).
class Request {
  public:
    Request(std::uint16_t type, std::uint16_t flags) {
        nlmsghdr* const header = add<nlmsghdr>();
        header->nlmsg_type = type;
        header->nlmsg_flags = static_cast<std::uint16_t>(flags | NLM_F_REQUEST | NLM_F_ACK);
    }

    /// A structure of zeros at the end.
    template <class T>
    T* add() {
        T* const place = reinterpret_cast<T*>(bytes_.data() + size_);
        size_ += NLMSG_ALIGN(sizeof(T));
        return place;
    }
    void attribute(std::uint16_t type, const void* data, std::size_t size) {
        const std::size_t at = open_attribute(type);
        std::memcpy(bytes_.data() + size_, data, size);
        size_ += size;
        close_attribute(at);
    }
    void attribute(std::uint16_t type, const std::string& text) {
        attribute(type, text.c_str(), text.size() + 1);
    }
    void attribute(std::uint16_t type, std::uint32_t value) { attribute(type, &value, sizeof value); }
    std::size_t open_attribute(std::uint16_t type) {
        const std::size_t at = size_;
        add<rtattr>()->rta_type = type;
        return at;
    }
    void close_attribute(std::size_t at) {
        reinterpret_cast<rtattr*>(bytes_.data() + at)->rta_len = static_cast<std::uint16_t>(size_ - at);
        size_ = NLMSG_ALIGN(size_);
    }

    /// Throws what the kernel answers, unless it has done it.
    void send(const std::string& what) {
        reinterpret_cast<nlmsghdr*>(bytes_.data())->nlmsg_len = static_cast<std::uint32_t>(size_);
        const Socket netlink(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
        check(::send(netlink.fd, bytes_.data(), size_, 0) >= 0, what);
        alignas(nlmsghdr) std::array<char, 4096> answer{};
        check(recv(netlink.fd, answer.data(), answer.size(), 0) >= 0, what);
        nlmsgerr error{};
        std::memcpy(&error, answer.data() + NLMSG_HDRLEN, sizeof error);
        errno = -error.error;
        check(error.error == 0, what);
    }

  private:
    alignas(nlmsghdr) std::array<char, 1024> bytes_{};
    std::size_t size_ = 0;
};

/// Works on a device of the present namespace.
class Device {
  public:
    explicit Device(const std::string& name) : name_(name) {}

    void set_address(const std::string& address) {
        ifreq request = of_device();
        sockaddr_in value{};
        value.sin_family = AF_INET;
        inet_pton(AF_INET, address.c_str(), &value.sin_addr);
        std::memcpy(&request.ifr_addr, &value, sizeof value);
        control(SIOCSIFADDR, request, "address");
        value.sin_addr.s_addr = htonl(0xFFFFFF00U);
        std::memcpy(&request.ifr_netmask, &value, sizeof value);
        control(SIOCSIFNETMASK, request, "netmask");
    }
    void set_feature(std::uint32_t command, bool on, const char* what) {
        ethtool_value value{command, on ? 1U : 0U};
        ifreq request = of_device();
        request.ifr_data = reinterpret_cast<char*>(&value);
        control(SIOCETHTOOL, request, what);
    }
    void start() {
        ifreq request = of_device();
        request.ifr_flags = IFF_UP;
        control(SIOCSIFFLAGS, request, "up");
    }

  private:
    [[nodiscard]] ifreq of_device() const {
        ifreq request{};
        name_.copy(request.ifr_name, sizeof request.ifr_name - 1);
        return request;
    }
    void control(unsigned long operation, ifreq& request, const char* what) {
        check(ioctl(socket_.fd, operation, &request) == 0, name_ + ": " + what);
    }

    const std::string name_;
    const Socket socket_{AF_INET, SOCK_DGRAM, 0};
};

std::string name_of(unsigned i) {
    return "petbench" + std::to_string(i);
}

/// Device i of the present namespace and, connected to it, device i of another.
void create_pair(unsigned i, std::uint32_t mtu, const NetworkNamespace& other) {
    Request request(RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL);
    request.add<ifinfomsg>();
    request.attribute(IFLA_IFNAME, name_of(i));
    request.attribute(IFLA_MTU, mtu);
    // The kernel cuts a run of datagrams before it gives it to the device.
    request.attribute(IFLA_GSO_MAX_SEGS, 1U);
    const std::size_t info = request.open_attribute(IFLA_LINKINFO);
    request.attribute(IFLA_INFO_KIND, std::string("veth"));
    const std::size_t data = request.open_attribute(IFLA_INFO_DATA);
    const std::size_t peer = request.open_attribute(VETH_INFO_PEER);
    request.add<ifinfomsg>();
    request.attribute(IFLA_IFNAME, name_of(i));
    request.attribute(IFLA_MTU, mtu);
    request.attribute(IFLA_NET_NS_FD, static_cast<std::uint32_t>(other.descriptor()));
    request.close_attribute(peer);
    request.close_attribute(data);
    request.close_attribute(info);
    request.send("cannot create a pair of devices");
}

std::string address_of(unsigned i, unsigned end) {
    return "10.11." + std::to_string(i) + "." + std::to_string(end);
}

}  // namespace

NetworkNamespace::NetworkNamespace() {
    const int home = present_namespace();
    const bool created = unshare(CLONE_NEWNET) == 0;
    const int error = errno;
    if (created) {
        descriptor_ = present_namespace();
        setns(home, CLONE_NEWNET);
    }
    close(home);
    errno = error;
    check(created, "cannot create a network namespace");
}

NetworkNamespace::~NetworkNamespace() {
    close(descriptor_);
}

Visit::Visit(const NetworkNamespace& place) : home_(present_namespace()) {
    const bool entered = setns(place.descriptor(), CLONE_NEWNET) == 0;
    if (!entered) close(home_);
    check(entered, "cannot enter a network namespace");
}

Visit::~Visit() {
    setns(home_, CLONE_NEWNET);
    close(home_);
}

VethPairs::VethPairs(unsigned pairs, std::size_t payload) {
    const auto mtu = static_cast<std::uint32_t>(std::max(ethernet_mtu, payload + ip_and_udp_headers));
    {
        const Visit senders(senders_);
        for (unsigned i = 0; i < pairs; ++i) {
            create_pair(i, mtu, receivers_);
            Device device(name_of(i));
            device.set_address(address_of(i, 1));
            // The other end skips NAPI and GRO where this end could send long segments itself.
            device.set_feature(ETHTOOL_STSO, false, "TSO");
            device.start();
        }
    }
    const Visit receivers(receivers_);
    for (unsigned i = 0; i < pairs; ++i) {
        Device device(name_of(i));
        device.set_address(address(i));
        device.set_feature(ETHTOOL_SGRO, true, "GRO");
        device.start();
    }
}

std::string VethPairs::address(unsigned i) {
    return address_of(i, 2);
}

}  // namespace petacq::bench
