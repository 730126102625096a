#include "config/base/json_templates.hpp"

PETACQ_JSON_TEMPLATES(template);
