// Each wall library is one room of runtime/, linked whole (meson.build). It has no code of its own.
