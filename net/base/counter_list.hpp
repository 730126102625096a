// How counters are declared: in lists, each counter in one of them and nowhere else. The lists are
// net/receive/counters.hpp, daemon/tracking/counters.hpp, daemon/run/counters.hpp and gpu/base/counters.hpp.
// The structs that hold the counters, the arithmetic of the ledger, ledger.csv, the status document, the
// metrics and the tables in docs/ derive from them. docs/how-to/develop.md, "Add a counter", gives the steps.
//
// X(section, name, kind, unit, column, metric, help)
//   section, name   keys in JSON; the name is the member of the struct
//   kind    growth: counts events. at_start: a level when the run started; the at_end counter that follows it
//           is the same level when the run stopped
//   unit    the thing counted, in the plural
//   column  position in ledger.csv, from 1; 0: not in ledger.csv. Columns keep their position, so an added
//           counter takes the next free number of all lists
//   metric  name of the Prometheus metric; by_reason: a sample of the metric that its section shares;
//           no_metric
//   help    one sentence for docs/ and for HELP of a metric of its own
#pragma once

#include <cstdint>

/// The member that a counter is in its struct.
#define PETACQ_COUNTER_MEMBER(section, name, ...) std::uint64_t name = 0;
