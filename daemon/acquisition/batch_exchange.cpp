#include "daemon/acquisition/batch_exchange.hpp"

#include <utility>

#include "daemon/run/capture.hpp"

namespace petacq::daemon {

std::optional<net::DatagramSpan> BatchExchange::start_reading(std::optional<net::DatagramSpan> piece) {
    free_low_water_ = free_low_water();
    piece_ = piece.value_or(net::DatagramSpan{});
    read_ = 0;
    return piece;
}

void BatchExchange::read_completely() {
    capture();
    piece_ = {};
}

/// Offers the datagrams that have been read.
void BatchExchange::capture() {
    if (capture_ != nullptr && piece_.batch != nullptr)
        capture_->offer(*piece_.batch, piece_.datagrams.first(read_));
}

void BatchExchange::give_back(std::vector<net::Batch*>& batches) {
    for (net::Batch* batch : batches)
        pool_.put(batch);
    batches.clear();
}

void BatchExchange::stop_capture() {
    capture();
    capture_ = nullptr;
}

}  // namespace petacq::daemon
