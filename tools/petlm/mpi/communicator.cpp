#include "tools/petlm/mpi/communicator.hpp"

#include <algorithm>
#include <limits>

namespace petacq::petlm {
namespace {

/// MPI counts with int.
constexpr std::size_t most_bytes = std::size_t{1} << 30U;

template <class Call>
void in_pieces(std::size_t bytes, Call call) {
    for (std::size_t done = 0; done < bytes; done += most_bytes)
        call(done, static_cast<int>(std::min(most_bytes, bytes - done)));
}

}  // namespace

int Communicator::rank() const {
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    return rank;
}

int Communicator::size() const {
    int size = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    return size;
}

int Communicator::rank_on_host() const {
    MPI_Comm host = MPI_COMM_NULL;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank(), MPI_INFO_NULL, &host);
    int number = 0;
    MPI_Comm_rank(host, &number);
    MPI_Comm_free(&host);
    return number;
}

void Communicator::broadcast(std::vector<std::byte>& bytes, int root) const {
    std::uint64_t size = bytes.size();
    MPI_Bcast(&size, 1, MPI_UINT64_T, root, MPI_COMM_WORLD);
    bytes.resize(size);
    in_pieces(size, [&](std::size_t at, int count) {
        MPI_Bcast(bytes.data() + at, count, MPI_BYTE, root, MPI_COMM_WORLD);
    });
}

std::vector<std::uint64_t> Communicator::gather(std::uint64_t value) const {
    std::vector<std::uint64_t> all(static_cast<std::size_t>(size()));
    MPI_Allgather(&value, 1, MPI_UINT64_T, all.data(), 1, MPI_UINT64_T, MPI_COMM_WORLD);
    return all;
}

void Communicator::send(std::span<const std::byte> bytes, int to, int tag) const {
    const std::uint64_t size = bytes.size();
    MPI_Send(&size, 1, MPI_UINT64_T, to, tag, MPI_COMM_WORLD);
    in_pieces(size, [&](std::size_t at, int count) {
        MPI_Send(bytes.data() + at, count, MPI_BYTE, to, tag, MPI_COMM_WORLD);
    });
}

std::vector<std::byte> Communicator::receive(int from, int tag) const {
    std::uint64_t size = 0;
    MPI_Recv(&size, 1, MPI_UINT64_T, from, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    std::vector<std::byte> bytes(size);
    in_pieces(size, [&](std::size_t at, int count) {
        MPI_Recv(bytes.data() + at, count, MPI_BYTE, from, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    });
    return bytes;
}

void Communicator::post(std::uint64_t value, int to, int tag) {
    std::erase_if(posted_, [](const std::unique_ptr<Posted>& p) {
        int done = 0;
        MPI_Test(&p->request, &done, MPI_STATUS_IGNORE);
        return done != 0;
    });
    posted_.push_back(std::make_unique<Posted>(Posted{value, MPI_REQUEST_NULL}));
    Posted& p = *posted_.back();
    MPI_Isend(&p.value, 1, MPI_UINT64_T, to, tag, MPI_COMM_WORLD, &p.request);
}

std::uint64_t Communicator::take(int from, int tag) const {
    std::uint64_t value = 0;
    MPI_Recv(&value, 1, MPI_UINT64_T, from, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return value;
}

void Communicator::finish() {
    for (const auto& p : posted_)
        MPI_Wait(&p->request, MPI_STATUS_IGNORE);
    posted_.clear();
}

}  // namespace petacq::petlm
