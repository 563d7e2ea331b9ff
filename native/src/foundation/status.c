/* foundation/status.c: names and texts of foundation/status.h's table. Owns nothing else. */
#include "foundation/status.h"

const char *status_name(int status)
{
    switch (status) {
#define STATUS_NAME(name, number, text) \
    case number: return #name;
        STATUS_TABLE(STATUS_NAME)
#undef STATUS_NAME
    default: return "UNKNOWN";
    }
}

const char *status_text(int status)
{
    switch (status) {
#define STATUS_TEXT(name, number, text) \
    case number: return text;
        STATUS_TABLE(STATUS_TEXT)
#undef STATUS_TEXT
    default: return "an unknown status: a bug of this release";
    }
}
