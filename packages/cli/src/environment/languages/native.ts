import { always, type Language } from './language.js'

export const cmake: Language = {
  check: { name: 'ctest', run: 'cmake --build build -j 2 && ctest --test-dir build --output-on-failure' },
  ahead: 'cmake --build build -j 2',
  hasTests: (read) => /\b(enable_testing|add_test)\b|include\(CTest\)/i.test(read('CMakeLists.txt') ?? ''),
  rules: [{ files: ['CMakeLists.txt'], setup: ['cmake -S . -B build'] }],
}

const meson: Language = {
  check: { name: 'meson-test', run: 'meson test -C build --print-errorlogs' },
  ahead: 'meson compile -C build',
  hasTests: always,
  rules: [{ files: ['meson.build'], setup: ['meson setup build'] }],
}

const autotools: Language = {
  check: { name: 'make-check', run: 'make -j 2 && make check' },
  ahead: 'make -j 2',
  hasTests: always,
  rules: [
    { files: ['configure'], setup: ['./configure'] },
    { files: ['configure.ac', 'configure.in'], setup: ['autoreconf -fi', './configure'] },
  ],
}

const makefiles = ['GNUmakefile', 'makefile', 'Makefile']

/** Projects of every language have one. */
export const make: Language = {
  check: { name: 'make', run: 'make' },
  ahead: 'make -j 2',
  hasTests: always,
  rules: [
    ...['test', 'check'].map((target) => ({
      files: makefiles,
      isOf: (content: string) => new RegExp(`^${target}\\s*:(?!=)`, 'm').test(content),
      setup: [],
      check: { name: `make-${target}`, run: `make ${target}` },
    })),
    { files: makefiles, setup: [] },
  ],
}

/** Of these the first that a repository has, where nothing else says what it is: many bring them beside something else. */
export const otherwise: readonly Language[] = [meson, autotools]
