import { expect, test } from 'vitest';
import { containerfileProblem, instructionsOf } from './instructions.ts';

const CONTINUED = `# syntax=docker/dockerfile:1
FROM configs AS final

RUN dnf install \\
  # not the end

  chrony && \\
  dnf clean all
COPY <<EOF /etc/motd
RUNN is text
EOF
RUN cat <<-'A.1' 3<<"B" <<<"no document" && echo $((1<<2))
	a
	A.1
b
B
USER root`;

test('an instruction has its continued lines and here-documents', () => {
  expect(instructionsOf(CONTINUED).map((text) => text.split('\n').length)).toEqual([1, 1, 1, 5, 3, 5, 1]);
  expect(instructionsOf(CONTINUED).join('\n')).toBe(CONTINUED);
});

test('another escape character is what continues a line', () => {
  expect(instructionsOf('# escape=`\nRUN a `\n b\nRUN c \\\nRUN d')).toHaveLength(4);
});

test.each([
  CONTINUED,
  '',
  '# nothing',
  'RUN true',
  'run --mount=type=cache,target=/a \\\n  true',
  'FROM configs AS final\nHEALTHCHECK NONE\nMAINTAINER',
  'ONBUILD RUN true',
  'ENV a b\nLABEL a=b c="d e"',
])('%j has no problem', (text) => {
  expect(containerfileProblem(text)).toBeUndefined();
});

test.each([
  [
    'FROM configs AS final\nRUNN dnf install chrony',
    'line 2: "RUNN" is no instruction; expected such as RUN or COPY',
  ],
  ['RUN a \\\n  b\n\ndnf install chrony', 'line 4: "dnf" is no instruction; expected such as RUN or COPY'],
  ['RUN', 'line 1: RUN has nothing after it; expected a command'],
  ['RUN --network=none', 'line 1: RUN has nothing after it; expected a command'],
  ['FROM \\\n', 'line 1: FROM has nothing after it; expected a base image'],
  ['COPY a /a\nWORKDIR  ', 'line 2: WORKDIR has nothing after it; expected a directory'],
])('%j: %s', (text, expected) => {
  expect(containerfileProblem(text)).toBe(expected);
});
