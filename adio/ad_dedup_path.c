#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "adio/ad_dedup.h"

/* Takes . and .. and double slashes out of an absolute path, in place, by its text alone. */
static void normalise(char* path) {
  char* out = path;
  const char* in = path;
  while (*in != '\0') {
    while (*in == '/') ++in;
    const size_t length = strcspn(in, "/");
    if (length == 2 && in[0] == '.' && in[1] == '.') {
      while (out > path && *--out != '/') continue;
    } else if (length > 0 && !(length == 1 && in[0] == '.')) {
      *out++ = '/';
      memmove(out, in, length);
      out += length;
    }
    in += length;
  }
  if (out == path) *out++ = '/';
  *out = '\0';
}

char* ad_dedup_absolute_path(const char* name) {
  char* path;
  if (name[0] == '\0') return strdup("");
  if (name[0] == '/') {
    path = strdup(name);
  } else {
    char* here = getcwd(NULL, 0);
    path = here ? malloc(strlen(here) + strlen(name) + 2) : NULL;
    if (path != NULL) sprintf(path, "%s/%s", here, name);
    free(here);
  }
  if (path == NULL) return NULL;

  /* Where something is, all links count, also one in the last part. */
  char* whole = realpath(path, NULL);
  if (whole != NULL) {
    free(path);
    return whole;
  }

  /* .. behind a link is not the directory that the text names, so the directory part is resolved
   * first, if the last part is a plain name. */
  char* slash = strrchr(path, '/');
  const char* last = slash + 1;
  if (strcmp(last, "") != 0 && strcmp(last, ".") != 0 && strcmp(last, "..") != 0) {
    *slash = '\0';
    char* directory = realpath(slash == path ? "/" : path, NULL);
    *slash = '/';
    if (directory != NULL) {
      char* joined = malloc(strlen(directory) + strlen(last) + 2);
      if (joined != NULL) {
        sprintf(joined, "%s/%s", strcmp(directory, "/") == 0 ? "" : directory, last);
      }
      free(directory);
      free(path);
      return joined;
    }
  }
  normalise(path);
  return path;
}
