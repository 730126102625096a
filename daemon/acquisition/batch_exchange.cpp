#include "daemon/acquisition/batch_exchange.hpp"

#include "daemon/run/capture.hpp"

namespace petacq::daemon {

net::Batch* BatchExchange::wait(std::chrono::microseconds timeout) {
    net::Batch* batch = nullptr;
    if (!filled_.wait_dequeue_timed(batch, timeout)) batch = nullptr;
    free_low_water_ = free_low_water();
    return batch;
}

void BatchExchange::give_back(std::vector<net::Batch*>& batches) {
    for (net::Batch* batch : batches) {
        if (capture_ == nullptr || !capture_->offer(batch)) pool_.put(batch);
    }
    batches.clear();
}

void BatchExchange::stop_capture() {
    if (capture_ != nullptr && reading_ != nullptr) capture_->offer_part(*reading_, read_);
    capture_ = nullptr;
}

}  // namespace petacq::daemon
