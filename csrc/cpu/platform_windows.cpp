// The functions of platform.h on Windows: compiled by `make
// test-compile-other`, and never run.
#if defined(_WIN32)

#define NOMINMAX
#define WIN32_LEAN_AND_MEAN
#define PSAPI_VERSION 2  // functions of kernel32, no library to link
#include <windows.h>

#include <errno.h>
#include <io.h>
#include <malloc.h>
#include <psapi.h>

#include <algorithm>
#include <vector>

#include "platform.h"

namespace gsample {

namespace {

constexpr size_t kMostBytes = size_t{1} << 30;  // per call

OVERLAPPED at_offset(int64_t offset) {
  OVERLAPPED place{};
  place.Offset = static_cast<DWORD>(offset);
  place.OffsetHigh = static_cast<DWORD>(offset >> 32);
  return place;
}

HANDLE handle_of(int fd) {
  return reinterpret_cast<HANDLE>(_get_osfhandle(fd));
}

// The errno of Windows' last error, as far as callers tell them apart.
int last_errno() {
  switch (GetLastError()) {
    case ERROR_DISK_FULL:
    case ERROR_HANDLE_DISK_FULL:
      return ENOSPC;
    case ERROR_ACCESS_DENIED:
      return EACCES;
    case ERROR_INVALID_HANDLE:
      return EBADF;
    default:
      return EIO;
  }
}

// The main thread loads the extension.
const DWORD main_thread = GetCurrentThreadId();

}  // namespace

void* allocate_aligned(size_t align, size_t bytes) {
  return _aligned_malloc(bytes, align);
}

void free_aligned(void* data) {
  _aligned_free(data);
}

uint64_t thread_number() {
  return GetCurrentThreadId();
}

bool in_main_thread() {
  return GetCurrentThreadId() == main_thread;
}

int64_t thread_nanoseconds() {
  FILETIME created, ended, kernel, user;
  if (GetThreadTimes(GetCurrentThread(), &created, &ended, &kernel, &user) == 0)
    return 0;
  const auto ticks = [](FILETIME time) {  // of 100 ns
    return int64_t{time.dwHighDateTime} << 32 | int64_t{time.dwLowDateTime};
  };
  return 100 * (ticks(kernel) + ticks(user));
}

int64_t read_at(int fd, void* to, size_t bytes, int64_t offset) {
  OVERLAPPED place = at_offset(offset);
  DWORD done = 0;
  const DWORD size = static_cast<DWORD>(std::min(bytes, kMostBytes));
  if (ReadFile(handle_of(fd), to, size, &done, &place) != 0)
    return done;
  if (GetLastError() == ERROR_HANDLE_EOF)
    return 0;
  errno = last_errno();
  return -1;
}

int64_t write_at(int fd, const void* from, size_t bytes, int64_t offset) {
  OVERLAPPED place = at_offset(offset);
  DWORD done = 0;
  const DWORD size = static_cast<DWORD>(std::min(bytes, kMostBytes));
  if (WriteFile(handle_of(fd), from, size, &done, &place) != 0)
    return done;
  errno = last_errno();
  return -1;
}

void* open_library(int64_t descriptor) {
  const HANDLE file = handle_of(static_cast<int>(descriptor));
  std::vector<wchar_t> path(32768);  // the longest path
  const DWORD size = GetFinalPathNameByHandleW(
      file, path.data(), static_cast<DWORD>(path.size()), FILE_NAME_NORMALIZED);
  if (size == 0 || size >= path.size())
    return nullptr;
  return LoadLibraryW(path.data());
}

int close_library(void* library) {
  return FreeLibrary(static_cast<HMODULE>(library)) != 0 ? 0 : -1;
}

void* find_symbol(void* library, const char* name) {
  return reinterpret_cast<void*>(
      GetProcAddress(static_cast<HMODULE>(library), name));
}

void* find_symbol(const char* name) {
  std::vector<HMODULE> modules(1024);
  DWORD bytes = 0;
  const DWORD room = static_cast<DWORD>(modules.size() * sizeof(HMODULE));
  if (EnumProcessModules(GetCurrentProcess(), modules.data(), room, &bytes) ==
      0)
    return nullptr;
  modules.resize(std::min(bytes, room) / sizeof(HMODULE));
  for (HMODULE module : modules)
    if (void* const found = find_symbol(module, name))
      return found;
  return nullptr;
}

}  // namespace gsample

#endif
