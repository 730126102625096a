#include "tools/petlm/records/failures.hpp"

#include <exception>

#include "config/base/answer.hpp"
#include "config/base/error.hpp"
#include "daemon/listmode/file_reader.hpp"
#include "tools/petlm/base/status.hpp"

namespace petacq::petlm {

int status_of(const std::string& program, const std::function<int()>& command) {
    const auto failed = [&](const std::exception& error, int status) {
        config::print_error(program, error.what());
        return status;
    };
    try {
        return command();
    } catch (const UsageError& error) {
        return failed(error, usage);
    } catch (const daemon::NotListMode& error) {
        return failed(error, bad_data);
    } catch (const BadInput& error) {
        return failed(error, has_problems);
    } catch (const config::IoError& error) {
        return failed(error, io_failure);
    } catch (const config::Error& error) {
        return failed(error, bad_configuration);
    } catch (const std::exception& error) {
        return failed(error, io_failure);
    }
}

}  // namespace petacq::petlm
