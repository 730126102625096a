#include "daemon/system/journal.hpp"

#include <sys/stat.h>

#include <cstdlib>
#include <string>

#ifdef PETACQ_HAVE_LIBSYSTEMD
#define SD_JOURNAL_SUPPRESS_LOCATION
#include <systemd/sd-journal.h>

#include <vector>
#endif

namespace petacq::daemon {

bool is_journal_stream(int descriptor) {
    const char* const stream = std::getenv("JOURNAL_STREAM");
    struct stat file {};
    if (stream == nullptr || ::fstat(descriptor, &file) != 0) return false;
    return stream == std::to_string(file.st_dev) + ":" + std::to_string(file.st_ino);
}

#ifdef PETACQ_HAVE_LIBSYSTEMD

bool send_to_journal(int priority, std::string_view message) {
    std::vector<std::string> fields{"PRIORITY=" + std::to_string(priority), "SYSLOG_IDENTIFIER=petacqd"};
    std::size_t end = message.find(journal_separator);
    fields.push_back("MESSAGE=" + std::string(message.substr(0, end)));
    while (end != std::string_view::npos) {
        const std::size_t begin = end + 1;
        end = message.find(journal_separator, begin);
        fields.emplace_back(message.substr(begin, end == std::string_view::npos ? end : end - begin));
    }
    std::vector<iovec> pieces;
    pieces.reserve(fields.size());
    for (std::string& field : fields)
        pieces.push_back({field.data(), field.size()});
    return sd_journal_sendv(pieces.data(), static_cast<int>(pieces.size())) == 0;
}

#else

bool send_to_journal(int, std::string_view) {
    return false;
}

#endif

}  // namespace petacq::daemon
