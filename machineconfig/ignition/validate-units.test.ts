import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseUnitSyntax, unitFilePaths } from './validate-units.ts';

describe('unit syntax', () => {
  it('reads sections, settings, comments and continuation lines', () => {
    const unit = `# head
[Unit]
Description=A \\
  long one
; comment
[Service]
Environment="A=B C" D=E\r
ExecStart=
[Install]
WantedBy=multi-user.target`;
    expect(parseUnitSyntax(unit)).toEqual({ sections: ['Unit', 'Service', 'Install'] });
  });

  it.each([
    ['[Unit\nA=b', 'line 1 opens a section without closing bracket'],
    ['[Unit] x', 'line 1 has something after the section name'],
    ['[Unit]x', 'line 1 has something after the section name'],
    ['[Unit]\nnonsense', 'line 2 is neither a section, a comment nor Name=value'],
    [`[Unit]\nA=${'b'.repeat(2048)}`, 'line 2 is longer than 2048 bytes'],
  ])('says what is wrong with %j', (contents, problem) => {
    expect(parseUnitSyntax(contents).problem).toBe(problem);
  });

  it.each(['', '\n', '# only a comment', 'before any section', '[Service]\n# c\\\nnonsense\n'])(
    'lets %j pass, as go-systemd does',
    (contents) => {
      expect(parseUnitSyntax(contents).problem).toBeUndefined();
    },
  );

  it('reads any text', () => {
    fc.assert(fc.property(fc.string({ unit: 'binary' }), (contents) => void parseUnitSyntax(contents)));
  });
});

it('knows the files of units and drop-ins that have contents', () => {
  const paths = unitFilePaths([
    {
      name: 'a.service',
      contents: '[Unit]',
      dropins: [{ name: '1.conf', contents: '[Unit]' }, { name: '2.conf' }],
    },
    { name: 'b.service', contents: '', dropins: [{ name: '3.conf', contents: '' }] },
    { name: 'c.service', enabled: true },
  ]);
  expect([...paths]).toEqual(['/etc/systemd/system/a.service', '/etc/systemd/system/a.service.d/1.conf']);
});
