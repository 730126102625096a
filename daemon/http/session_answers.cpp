// Answers a request: with a resource, or with what the control thread or a file of a run answers, after
// checking the right to control.
#include <boost/asio/post.hpp>
#include <nlohmann/json.hpp>
#include <utility>

#include "config/base/json_file.hpp"
#include "daemon/control/control_token.hpp"
#include "daemon/http/checks.hpp"
#include "daemon/http/reports.hpp"
#include "daemon/http/session.hpp"

namespace petacq::daemon {

namespace beast = boost::beast;
namespace http = beast::http;
using nlohmann::json;

namespace {

/// A report brings its own style and pictures, and runs nothing.
constexpr const char* report_policy =
    "default-src 'none'; img-src data:; style-src 'unsafe-inline'; sandbox; frame-ancestors 'none'";
constexpr std::size_t max_reports_read = 4;
/// Of the reports that are on their way to readers, however slow those are.
constexpr std::size_t max_report_bytes = 128U << 20;

std::string_view view(beast::string_view text) {
    return {text.data(), text.size()};
}

unsigned status_of(const RpcError& error) {
    switch (error.code()) {
        case rpc_refused:
            return 409;
        case rpc_internal_error:
            return 500;
        default:
            return 400;
    }
}

}  // namespace

void HttpSession::handle(const Request& request) {
    head_ = request.method() == http::verb::head;
    keep_alive_ = request.keep_alive();
    version_ = request.version();
    // Without knowing the coding, nobody can tell where this request ends and the next one starts.
    const std::size_t codings = request.count(http::field::transfer_encoding);
    if (codings > 1 || (codings == 1 && !is_chunked(view(request[http::field::transfer_encoding])))) {
        keep_alive_ = false;
        return send_error(501, "expected no Transfer-Encoding but chunked");
    }
    const std::size_t hosts = request.count(http::field::host);
    if (hosts > 1 || (hosts == 0 && version_ > 10)) return send_error(400, "expected one Host header");
    if (hosts == 1 && !host_is_ours(view(request[http::field::host]), context_->options.host_names)) {
        return send_error(403, "this host name is not in http.host_names");
    }
    const std::string_view path = path_of(view(request.target()));
    const HttpTarget target = HttpResources::target_of(path);
    if (target == HttpTarget::start) return handle_control(request, "start");
    if (target == HttpTarget::stop) return handle_control(request, "stop");
    if (target == HttpTarget::mark) return handle_control(request, "mark");
    const bool reads = request.method() == http::verb::get || head_;
    const bool lists_runs = target == HttpTarget::runs && context_->runs->known();
    const auto report = context_->options.data_dir.empty() ? std::nullopt : report_file(path);
    const auto resource =
        lists_runs || report ? std::nullopt : context_->resources.get(path, context_->statistics);
    if (!resource && !lists_runs && !report) return send_error(404, "no such resource");
    if (!reads) return send_error(405, "only GET and HEAD are allowed here", "GET, HEAD");
    if (lists_runs) return send_runs();
    if (report) return read_and_send(*report);
    send(*resource);
}

void HttpSession::await_answer(std::chrono::milliseconds time_limit) {
    awaiting_ = true;
    time_limit_.expires_after(time_limit);
    time_limit_.async_wait([session = weak_from_this()](boost::system::error_code error) {
        const auto self = session.lock();
        if (!self || error) return;
        self->answered([&] {
            self->keep_alive_ = false;  // a late answer must find no later request
            self->send_error(503, "no answer in time: the disk may hang");
        });
    });
}

void HttpSession::take(const Answer& answer) {
    answered([&] {
        if (answer.error) return send_error(status_of(*answer.error), answer.error->what());
        send_json(200, answer.result);
    });
}

void HttpSession::send_runs() {
    await_answer(context_->options.request_timeout);
    const bool asked = context_->runs->get([session = weak_from_this()](const Answer& answer) {
        if (const auto self = session.lock()) self->take(answer);
    });
    if (!asked) send_error(503, "the list of runs does not come: the disk may hang");
}

// A disk may take any time: another thread reads.
void HttpSession::read_and_send(const ReportFile& report) {
    std::erase_if(context_->reports_held, [](const auto& held) { return held.expired(); });
    std::size_t bytes = 0;
    for (const auto& held : context_->reports_held)
        if (const auto text = held.lock()) bytes += text->size();
    if (context_->reports_read >= max_reports_read || bytes >= max_report_bytes)
        return send_error(503, "too many reports at the same time");
    ++context_->reports_read;
    await_answer(context_->options.request_timeout);
    boost::asio::post(context_->files, [gate = context_->gate, data_dir = context_->options.data_dir, report,
                                        context = std::weak_ptr(context_), session = weak_from_this()] {
        auto text = read_report(data_dir, report);
        gate->post([text = std::move(text), type = report.type, context, session]() mutable {
            if (const auto known = context.lock()) {
                --known->reports_read;
                text = known->shared_report(std::move(text));
            }
            const auto self = session.lock();
            if (!self) return;
            self->answered([&] {
                if (!text) return self->send_error(404, "no such report: petlm plot makes it");
                self->send({200, type, text, false, report_policy});
            });
        });
    });
}

void HttpSession::handle_control(const Request& request, const char* method) {
    const HttpControl& control = context_->control;
    const bool marks = method == std::string_view("mark");
    if (!control.start || !control.stop || (marks && !control.mark)) {
        return send_error(403, "control over HTTP is switched off (http.allow_control)");
    }
    if (request.method() != http::verb::post) return send_error(405, "only POST is allowed here", "POST");
    const auto authorization = request.count(http::field::authorization) == 1
                                   ? view(request[http::field::authorization])
                                   : std::string_view();
    if (!is_authorised(authorization, context_->options.control_token)) {
        context_->log_limit.log(LogLevel::warning, "token",
                                "http: a request to {} without the right token was refused",
                                path_of(view(request.target())));
        return send_error(
            401,
            "expected the header Authorization: Bearer TOKEN, with the token of http.control_token_file");
    }
    // Refuses what a foreign page can make a browser send without asking the user.
    if (!is_json_type(view(request[http::field::content_type]))) {
        return send_error(415, "expected Content-Type: application/json");
    }
    // A browser sends each of them once.
    if (request.count(http::field::origin) > 1 || request.count("Sec-Fetch-Site") > 1)
        return send_error(400, "expected one Origin and one Sec-Fetch-Site header at most");
    if (request.count(http::field::origin) > 0 &&
        !origin_is_host(view(request[http::field::origin]), view(request[http::field::host]))) {
        return send_error(403, "a request from another site");
    }
    const auto site = request.find("Sec-Fetch-Site");
    if (site != request.end() && site->value() != "same-origin" && site->value() != "none") {
        return send_error(403, "a request from another site");
    }
    await_answer(context_->options.control_timeout);
    try {
        RpcCall call;
        call.method = method;
        if (!request.body().empty()) {
            if (config::json_nested_deeper(request.body(), rpc_max_depth))
                throw RpcError(rpc_invalid_params, "body: nested too deeply");
            call.params = std::make_shared<const json>(json::parse(request.body(), nullptr, false));
            if (!call.params->is_object()) {
                throw RpcError(rpc_invalid_params, "body: expected a JSON object of parameters, or nothing");
            }
        }
        if (call.method == "start") {
            // Each throws before there is a reply to abandon.
            StartRequest start = start_request(call);
            control.start(std::move(start), make_reply());
        } else if (call.method == "stop") {
            StopRequest stop = stop_request(call);
            control.stop(std::move(stop), make_reply());
        } else {
            std::string text = mark_text(call);
            control.mark(std::move(text), make_reply());
        }
    } catch (const RpcError& error) {
        send_error(status_of(error), error.what());
    }
}

Reply HttpSession::make_reply() {
    // The reply may outlive the connection and the server.
    return Reply([gate = context_->gate, session = weak_from_this()](Answer answer) {
        gate->post([session, answer = std::move(answer)] {
            if (const auto self = session.lock()) self->take(answer);
        });
    });
}

}  // namespace petacq::daemon
