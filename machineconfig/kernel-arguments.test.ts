import { describe, expect, test } from 'vitest';
import { problemsOf, render } from '../test/fixtures/rendering.ts';
import { imageObstacles } from './image-obstacles.ts';
import { bootEntryFault, splitKernelArguments } from './kernel-arguments.ts';
import { parseMachineConfig } from './parse-machine-config.ts';
import { parseNodeConfig } from './parse-node-config.ts';
import { refusedInStandardMode } from './standard-mode.ts';
import { ignition, machineConfig } from './testdata/build.ts';

test.each([
  ['', []],
  ['  a  b=1\tc ', ['a', 'b=1', 'c']],
  ['a="x y" "b c"', ['a="x y"', '"b c"']],
  ['a="never closed b', ['a="never closed b']],
])('%j splits into %j', (text, expected) => {
  expect(splitKernelArguments([text])).toEqual(expected);
});

const withArguments = (name: string, ...kernelArguments: string[]) => {
  const { spec, ...config } = machineConfig(name, ignition({}));
  return { ...config, spec: { ...spec, kernelArguments } };
};

describe('what would break a boot entry', () => {
  test.each<[string, string, RegExp]>([
    ['a quote that is not closed', 'x="un closed', /a double quote that is not closed/],
    ['three quotes', 'x="a" y="b', /"y=\\"b" has a double quote that is not closed/],
    ['a quote that only opens', '"', /a double quote that is not closed/],
    ['a line end between quotes', 'x="a\nb"', /a line end or tab between quotes/],
    ['a carriage return between quotes', 'x="a\rb"', /a line end or tab between quotes/],
    ['NUL', 'x=a\0b', /a control character/],
    ['an escape sequence', 'x=\u001b[0m', /a control character/],
    ['half of a surrogate pair', 'x=\ud800', /half of a surrogate pair/],
    ['a deployment of ostree', 'ostree=/ostree/boot.0/os/0/0', /names what is booted/],
    ['the same in quotes', '"ostree=/ostree/boot.0"', /names what is booted/],
    ['the same, its value in quotes', 'quiet ostree="/ostree/boot.0"', /names what is booted/],
    ['an image of composefs', 'composefs=abc', /names what is booted/],
    ['an initramfs', 'initrd=/initramfs.img', /names what is booted/],
    ['the end of the arguments', 'a -- b', /ends the arguments of the kernel/],
    ['the disk of one machine', 'root=UUID=1-2', /a disk of one machine/],
    ['the partition of one machine', 'boot=PARTUUID=1-2', /a disk of one machine/],
    ["another command for GRUB's script", 'slub_debug=FZ,a;F,b', /outside of double quotes: GRUB/],
    ['a pipe', 'x=a|b', /outside of double quotes: GRUB/],
    ['a block', 'x={a}', /outside of double quotes: GRUB/],
    ['a redirection', 'x=a>b', /outside of double quotes: GRUB/],
    ['a comment', 'a #b', /a comment/],
    ['an apostrophe', "x=it's", /a single quote that is not closed/],
    ['a backslash at the end', 'x=a\\', /a backslash before a blank/],
    ['a backslash before a quote', 'x="a\\"', /a backslash before a blank/],
    ['a backslash before a blank', 'x=a\\ b', /a backslash before a blank/],
    ['a variable', 'memmap=64M$0x8000', /begins a variable/],
    ['a variable between quotes', 'x="a$\u007bb"', /begins a variable/],
    ['more than the kernel reads', `x=${'a'.repeat(1535)}`, /have 1537 bytes/],
  ])('%s: %j', (_what, entry, reason) => {
    expect(bootEntryFault(entry)?.reason).toMatch(reason);
    const config = withArguments('61-q', entry);
    expect(parseMachineConfig(config).problems).toMatchObject([
      { path: 'spec.kernelArguments[0]', reason: expect.stringMatching(reason) },
    ]);
    expect(problemsOf([withArguments('60-a', 'quiet'), config])).toMatchObject([
      { machineConfig: '61-q', problems: [{ reason: expect.stringMatching(reason) }] },
    ]);
    const parsed = parseNodeConfig(config);
    if (!parsed.ok) throw new Error('a node has to be able to read a config from before the check');
    expect(imageObstacles(parsed.config).map(({ hinders, why }) => [hinders, why])).toEqual([
      ['node', expect.stringMatching(reason)],
    ]);
    const host = { osBackend: { name: 'ostree' }, baseImage: 'r.example.org/os' } as const;
    const change = { to: parsed.config, extensionsImage: '' };
    const from = { ...parsed.config, kernelArguments: [] };
    expect(refusedInStandardMode({ ...change, from }, host)).toEqual([expect.stringMatching(reason)]);
    expect(refusedInStandardMode({ ...change, from: parsed.config }, host)).toEqual([]);
  });

  test.each([
    '',
    'quiet',
    'audit=1\naudit_backlog_limit=8192\n',
    'dyndbg="file drivers/usb/* +p; module nvme +p"',
    '"x=a b"',
    'x=""',
    "x='a b'",
    'rd.multipath=default root=/dev/disk/by-label/dm-mpath-root',
    'root=LABEL=root rw',
    'rd.luks.uuid=1-2',
    'ostree.prepare-root.composefs=0',
    'crashkernel=1G-4G:192M,4G-64G:256M',
    'acpi_osi=! acpi_osi="!Windows 2012"',
    'ip=[fd00::1]::[fd00::2]:64:host:eth0:none',
    'memmap=64M\\$0x8000',
    'x=5 y=#a z=ä',
    `x=${'a'.repeat(1534)}`,
  ])('%j is an admin’s to set', (entry) => {
    expect(bootEntryFault(entry)).toBeUndefined();
    expect(parseMachineConfig(withArguments('a', entry)).problems).toEqual([]);
    const parsed = parseNodeConfig(render([withArguments('a', entry)]).rendered);
    expect(parsed.ok && imageObstacles(parsed.config)).toEqual([]);
  });

  test('quotes that only two entries close together are not closed', () => {
    const problems = problemsOf([withArguments('60-a', 'x="a'), withArguments('61-b', 'b"')]);
    expect(problems.map(({ machineConfig }) => machineConfig)).toEqual(['60-a', '61-b']);
  });

  test('arguments that are too long together name every MachineConfig that has some', () => {
    const long = `x=${'a'.repeat(800)}`;
    const configs = [
      withArguments('60-a', long),
      machineConfig('61-b', ignition({})),
      withArguments('62-c', long),
    ];
    expect(problemsOf(configs)).toEqual([
      {
        machineConfig: '62-c',
        problems: [
          {
            path: 'spec.kernelArguments',
            reason:
              'kernelArguments have 1605 bytes: the kernel cuts its command line off at 2048, and the host needs some of it (together with MachineConfig 60-a)',
            expected: 'at most 1536 bytes',
          },
        ],
      },
    ]);
  });
});
