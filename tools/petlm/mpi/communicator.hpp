// What the ranks of a job say to each other, over MPI.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace petacq::petlm {

/// All ranks of the job. Every function but send(), receive() and their kin is collective: all ranks call it,
/// in the same order. An error of MPI ends the job. One thread at a time.
class Communicator {
  public:
    [[nodiscard]] int rank() const;
    [[nodiscard]] int size() const;
    /// The number of this rank among those of its host.
    [[nodiscard]] int rank_on_host() const;

    /// The bytes of rank `root`, on all ranks.
    void broadcast(std::vector<std::byte>& bytes, int root) const;
    /// [rank] what each has given.
    [[nodiscard]] std::vector<std::uint64_t> gather(std::uint64_t value) const;

    /// Point to point. Messages of one tag between two ranks arrive in order.
    void send(std::span<const std::byte> bytes, int to, int tag) const;
    /// The size is that of the message.
    [[nodiscard]] std::vector<std::byte> receive(int from, int tag) const;

    /// Sends to one rank and receives from another, which expect that; up to 1 GiB each. Nothing: they are
    /// not spoken to.
    void swap(std::span<const std::byte> sent, int to, std::span<std::byte> received, int from,
              int tag) const;

    /// A number that the receiver may ask for later; the sender does not wait.
    void post(std::uint64_t value, int to, int tag);
    [[nodiscard]] std::uint64_t take(int from, int tag) const;
    /// Waits until all posted numbers have been taken.
    void finish();

  private:
    struct Posted {
        std::uint64_t value;
        MPI_Request request;
    };
    std::vector<std::unique_ptr<Posted>> posted_;
};

}  // namespace petacq::petlm
