#include "io/io_errno.h"

#include <errno.h>

enum status status_of_errno(int error)
{
    switch (error) {
    case ENOSPC:
    case EDQUOT: return STATUS_STORAGE_FULL;
    case ENOENT: return STATUS_FILE_NOT_FOUND;
    case EEXIST: return STATUS_FILE_EXISTS;
    case EROFS: return STATUS_STORAGE_READ_ONLY;
    case EACCES:
    case EPERM: return STATUS_ACCESS_REFUSED;
    case EMFILE:
    case ENFILE: return STATUS_DESCRIPTORS_USED_UP;
    case EADDRINUSE: return STATUS_ADDRESS_IN_USE;
    case EADDRNOTAVAIL: return STATUS_ADDRESS_UNKNOWN;
    default: return STATUS_IO_FAILED;
    }
}
