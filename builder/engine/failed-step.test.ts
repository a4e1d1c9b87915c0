import { expect, test } from 'vitest';
import { describeFailedStep } from './failed-step.ts';

/** What `packages` becomes (containerfile.ts): long enough to hide everything behind it. */
const SCRIPT = `if command -v rpm-ostree >/dev/null; then rpm-ostree install ${'a-package '.repeat(200)}; else echo "packages need rpm-ostree, dnf or apt-get, and the base image has none of them" >&2; exit 1; fi`;
const CAUSE = 'packages need rpm-ostree, dnf or apt-get, and the base image has none of them';

const engines: readonly (readonly [engine: string, message: string, output: readonly string[]])[] = [
  [
    'Docker',
    `The command '/bin/sh -c ${SCRIPT}' returned a non-zero code: 1`,
    [
      'Step 3/3 : RUN '.concat(SCRIPT),
      ' ---> Running in 0a1b2c',
      CAUSE,
      `The command '/bin/sh -c ${SCRIPT}' returned a non-zero code: 1`,
    ],
  ],
  [
    'BuildKit',
    `process "/bin/sh -c ${SCRIPT}" did not complete successfully: exit code: 1`,
    [
      `[sha256:0a1b2] [2/2] RUN ${SCRIPT}`,
      'CACHED: [1/2] FROM registry.example.com/os',
      CAUSE,
      `ERROR: process "/bin/sh -c ${SCRIPT}" did not complete successfully: exit code: 1`,
    ],
  ],
  [
    'Podman',
    `building at STEP "RUN ${SCRIPT}": while running runtime: exit status 1`,
    [
      `STEP 3/3: RUN ${SCRIPT}`.slice(0, 500),
      CAUSE,
      `Error: building at STEP "RUN ${SCRIPT}": while running runtime: exit status 1`.slice(0, 500),
    ],
  ],
  [
    'Podman without runc or crun',
    `building at STEP "RUN ${SCRIPT}": exit status 1`,
    [
      `STEP 3/3: RUN ${SCRIPT}`.slice(0, 500),
      CAUSE,
      'subprocess exited with status 1',
      'subprocess exited with status 1',
      `Error: building at STEP "RUN ${SCRIPT}": exit status 1`.slice(0, 500),
    ],
  ],
];

test.each(engines)('%s: the cause is first, and the script is cut off', (_, message, output) => {
  const [first = '', rest] = describeFailedStep(message, output).split(' (');
  expect(first).toBe(CAUSE);
  expect(rest).toMatch(/^exit (?:code|status) 1 of RUN if command -v rpm-ostree .{1,80}…\)$/);
});

test.each<[what: string, message: string, output: readonly string[], expected: string]>([
  [
    'what it printed before is behind the cause',
    "The command '/bin/sh -c make' returned a non-zero code: 2",
    ['one', 'two', 'three', 'four', 'five', 'make: *** [all] Error 1'],
    'make: *** [all] Error 1 (exit code 2 of RUN make). Before that it printed: two | three | four | five',
  ],
  [
    'a command that printed nothing',
    'building at STEP "RUN false": while running runtime: exit status 1',
    ['STEP 2/2: RUN false'],
    'RUN false ended with exit status 1 and printed nothing',
  ],
  ['a command that the engine does not name', 'exit status 3', ['no space'], 'no space (exit status 3)'],
  [
    'a file that can not be read',
    'dockerfile parse error on line 2: unknown instruction: RUNN',
    [],
    'dockerfile parse error on line 2: unknown instruction: RUNN',
  ],
  [
    'a copy that failed',
    'COPY failed: no such file or directory',
    ['Step 2/2 : COPY a /'],
    'COPY failed: no such file or directory',
  ],
  [
    'lines without end',
    'exit status 1',
    ['x'.repeat(500), 'y'.repeat(500)],
    `${'y'.repeat(299)}… (exit status 1). Before that it printed: ${'x'.repeat(199)}…`,
  ],
])('%s', (_, message, output, expected) => {
  expect(describeFailedStep(message, output)).toBe(expected);
});
