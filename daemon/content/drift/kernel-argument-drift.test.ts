import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  type BootedArguments,
  formatKernelArgumentDrifts,
  type KernelArgumentDrift,
  kernelArgumentDrifts,
} from './kernel-argument-drift.ts';

const drift = (argument: string, what: KernelArgumentDrift['what']): KernelArgumentDrift => ({
  argument,
  what,
});

describe('the kernel arguments of a boot', () => {
  test.each<[string, readonly string[], BootedArguments, readonly KernelArgumentDrift[]]>([
    ['nothing named', [], { entry: ['rw'] }, []],
    ['one in its entry', ['a=1'], { entry: ['rw', 'a=1'] }, []],
    ['one in entry and kernel', ['a=1'], { entry: ['a=1'], running: ['ostree=/x', 'a=1'] }, []],
    ['one that is missing', ['a=1'], { entry: ['rw', 'a=2'] }, [drift('a=1', 'missing')]],
    ['one that is in neither', ['a'], { entry: [], running: ['ostree=/x'] }, [drift('a', 'missing')]],
    ['one that the entry lost since', ['a'], { entry: [], running: ['a'] }, [drift('a', 'notInEntry')]],
    ['one that the boot left out', ['a'], { entry: ['a'], running: ['rw'] }, [drift('a', 'notRunning')]],
    ['one that is named twice', ['a', 'a'], { entry: ['a'] }, []],
    ['one that is named twice and missing', ['a', 'a'], { entry: [] }, [drift('a', 'missing')]],
    ['one of the host as well', ['quiet'], { entry: ['quiet', 'rw', 'quiet'] }, []],
    ['one with quotes', ['a="b c"'], { entry: ['a="b c"'], running: ['"a=b c"'] }, []],
    ['one with an empty value', ['a=', 'b=""'], { entry: ['a', 'b'], running: ['a=', 'b='] }, []],
    [
      'one that a bootloader may rewrite',
      ['a=$b', 'c=\\d'],
      { entry: ['a=$b', 'c=\\d'], running: ['a='] },
      [],
    ],
    ['one with a variable, gone', ['a=$b'], { entry: ['rw'], running: ['a=$b'] }, [drift('a=$b', 'missing')]],
    ['of the first boot', ['a'], { entry: ['a', '$ignition_firstboot'], running: ['a'] }, []],
    ['one that Shale added', ['a'], { entry: ['a'], added: ['a'] }, []],
    ['one that is left', ['b'], { entry: ['a', 'b'], added: ['a', 'b'] }, [drift('a', 'left')]],
    ['one that is left of two', [], { entry: ['a', 'a'], added: ['a', 'a'] }, [drift('a', 'left')]],
    ['one that an admin added', [], { entry: ['rw', 'mine'], running: ['rw', 'mine'], added: [] }, []],
  ])('%s', (_name, named, booted, expected) => {
    expect(kernelArgumentDrifts(named, booted)).toEqual(expected);
  });

  const argument = fc
    .tuple(fc.constantFrom('a', 'b', 'c.d', 'rd.e'), fc.constantFrom('', '=', '=1', '="x y"', '=$z'))
    .map((parts) => parts.join(''));
  const list = fc.array(argument, { maxLength: 6 });
  const admins = fc.array(
    fc.constantFrom('admin', 'admin=1', 'ostree=/x', '$ignition_firstboot', 'rd.e=admin'),
    { maxLength: 4 },
  );

  test('differ whatever their order, how often they are repeated, and what else an admin added', () => {
    const cases = fc.record({
      named: list,
      entry: list,
      running: fc.option(list, { nil: undefined }),
      admins,
    });
    fc.assert(
      fc.property(cases, fc.infiniteStream(fc.nat()), ({ named, entry, running, admins: own }, numbers) => {
        const shuffled = (of: readonly string[]) =>
          of
            .map((each) => ({ each, at: numbers.next().value ?? 0 }))
            .sort((a, b) => a.at - b.at)
            .map(({ each }) => each);
        const around = (of: readonly string[]) => shuffled([...of, ...own, ...of.slice(0, 2)]);
        const added = entry.slice(0, 3);
        const boot = (of: (arguments_: readonly string[]) => readonly string[]): BootedArguments => ({
          entry: of(entry),
          ...(running === undefined ? {} : { running: of(running) }),
          added,
        });
        expect(kernelArgumentDrifts(named, boot(around))).toEqual(
          kernelArgumentDrifts(
            named,
            boot((of) => of),
          ),
        );
      }),
    );
  });

  test('as they were staged never differ', () => {
    fc.assert(
      fc.property(list, admins, (named, own) => {
        const entry = [...own, ...named];
        expect(kernelArgumentDrifts(named, { entry, running: entry, added: named })).toEqual([]);
      }),
    );
  });
});

describe('what an admin reads of them', () => {
  const all: readonly KernelArgumentDrift[] = [
    drift('a="b c"', 'missing'),
    drift('n', 'notInEntry'),
    drift('r', 'notRunning'),
    drift('x=1', 'left'),
  ];
  const what =
    'Kernel arguments differ from rendered-1: a="b c" is missing; n is no longer in the bootloader entry, so the next boot lacks it; r is in the bootloader entry, but the kernel was started without it; x=1 was added by Shale, but the config does not name it';
  const updates =
    'shale reboot alone sets them, too, as does an update that reboots the node; /run/machine-config-daemon-force does not';

  test.each([
    [
      'rpm-ostree',
      `Run rpm-ostree kargs '--append-if-missing=a="b c"' --append-if-missing=n --delete-if-present=x=1 on the node`,
    ],
    [
      'bootc',
      `Run ostree admin kargs edit-in-place '--append-if-missing=a="b c"' --append-if-missing=n on the node. Remove x=1 from the booted deployment's options in /boot/loader/entries`,
    ],
    [
      'ostree',
      `Run ostree admin kargs edit-in-place '--append-if-missing=a="b c"' --append-if-missing=n on the node. Remove x=1 from the booted deployment's options in /boot/loader/entries`,
    ],
  ] as const)('on a host of %s', (tool, commands) => {
    expect(formatKernelArgumentDrifts(all, 'rendered-1', { name: tool })).toBe(
      `${what}. ${commands}. Run shale reboot for the node. ${updates}`,
    );
  });

  test.each([
    [
      'ostree',
      'missing',
      'Run ostree admin kargs edit-in-place --append-if-missing=n on the node. Run shale reboot',
    ],
    [
      'ostree',
      'notInEntry',
      'Run ostree admin kargs edit-in-place --append-if-missing=n on the node. shale reboot',
    ],
    ['ostree', 'notRunning', 'started without it. Run shale reboot'],
    [
      'ostree',
      'left',
      "Remove n from the booted deployment's options in /boot/loader/entries. Run shale reboot",
    ],
    ['rpm-ostree', 'missing', 'Run rpm-ostree kargs --append-if-missing=n on the node. Run shale reboot'],
    ['rpm-ostree', 'notInEntry', 'Run rpm-ostree kargs --append-if-missing=n on the node. Run shale reboot'],
    ['rpm-ostree', 'notRunning', 'started without it. Run shale reboot'],
    ['rpm-ostree', 'left', 'Run rpm-ostree kargs --delete-if-present=n on the node. Run shale reboot'],
  ] as const)('on a host of %s, of one that is %s', (tool, kind, expected) => {
    expect(formatKernelArgumentDrifts([drift('n', kind)], 'rendered-1', { name: tool })).toContain(expected);
  });

  test('is ten arguments, and how many more there are', () => {
    const many = (count: number) =>
      Array.from({ length: count }, (_, index) => drift(`a${index}`, 'missing'));
    expect(formatKernelArgumentDrifts(many(10), 'rendered-1', { name: 'ostree' })).toContain(
      'a9 is missing. Run',
    );
    expect(formatKernelArgumentDrifts(many(11), 'rendered-1', { name: 'ostree' })).toContain(
      'a9 is missing and 1 more. Run',
    );
    expect(formatKernelArgumentDrifts(many(12), 'rendered-1', { name: 'ostree' })).toContain(
      'a9 is missing and 2 more.',
    );
  });
});

test('names the place where only an admin can change them', () => {
  const bootc = { name: 'bootc', setsKernelArguments: false } as const;
  expect(
    formatKernelArgumentDrifts([drift('m', 'missing'), drift('l', 'left')], 'rendered-1', bootc),
  ).toContain(
    "Add m to the booted deployment's options in loader/entries on the EFI system partition. Remove l from",
  );
});
