import { type Problem, quote } from './problem.ts';

/** An argument: anything but white space of the C locale, or anything at all between double quotes. */
const ARGUMENT = /(?:[^ \f\n\r\t\v"]|"[^"]*(?:"|$))+/g;

/**
 * Splits entries of `spec.kernelArguments`, or a command line, into single arguments as the kernel does (next_arg in
 * lib/cmdline.c): at white space outside of double quotes. Quotes stay, and there is no escape for them.
 */
export function splitKernelArguments(entries: readonly string[]): string[] {
  return entries.flatMap((entry) => entry.match(ARGUMENT) ?? []);
}

/** COMMAND_LINE_SIZE of x86, arm64 and ppc64, with its NUL; what is longer, the kernel cuts off without a word. */
const COMMAND_LINE = 2048;
/** For what the host has by itself: BOOT_IMAGE, root, console, and ostree= with a checksum, which comes last. */
const OF_THE_HOST = 512;
const MOST_BYTES = COMMAND_LINE - OF_THE_HOST;

type Fault = Pick<Problem, 'reason' | 'expected'>;

/**
 * Finds what would break the boot entry that has these arguments: whatever follows them in it, such as `ostree=`, would
 * be lost, or the boot loader could not read the entry. An entry has one line of options. The kernel splits it, and so
 * does GRUB, which reads it as a command of its script (blscfg) where a Boot Loader Specification has none of that;
 * nodes boot by either. So an argument has to mean the same to both.
 *
 * `root=` is left to the admin: OpenShift documents it for multipath (`root=/dev/disk/by-label/dm-mpath-root`), and
 * bootc, rpm-ostree and MCO pass it on. By the UUID of one machine's disk, no other machine of the pool could boot.
 *
 * @param line an entry of `spec.kernelArguments`, or all arguments in one line.
 * @returns the first fault; undefined where there is none.
 */
export function bootEntryFault(line: string): Fault | undefined {
  const own = splitKernelArguments([line]);
  return (
    faultyText(line) ??
    openQuote(line) ??
    own
      .map((argument) => lineEndWithin(argument) ?? reservedArgument(argument))
      .find((fault) => fault !== undefined) ??
    unreadableForGrub(line) ??
    tooLong(own)
  );
}

function faultyText(line: string): Fault | undefined {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what must not be there.
  const control = /[\0-\x08\x0e-\x1f\x7f]/.exec(line);
  if (control !== null) {
    return { reason: `${quote(line)} has a control character`, expected: 'text without control characters' };
  }
  return line.isWellFormed()
    ? undefined
    : { reason: `${quote(line)} has half of a surrogate pair`, expected: 'text in Unicode' };
}

function openQuote(line: string): Fault | undefined {
  if (line.split('"').length % 2 === 1) return undefined;
  const open = splitKernelArguments([line]).find((argument) => argument.split('"').length % 2 === 0);
  return {
    reason: `${quote(open ?? line)} has a double quote that is not closed: all that follows on the kernel's command line would belong to it, ostree= too`,
    expected: 'double quotes in pairs, within one entry; the kernel has no escape for them',
  };
}

/** Between quotes no white space separates arguments; a line end would end the line of the boot entry. */
function lineEndWithin(argument: string): Fault | undefined {
  return /[\t\n\v\f\r]/.test(argument)
    ? { reason: `${quote(argument)} has a line end or tab between quotes`, expected: 'blanks between quotes' }
    : undefined;
}

/** What names the deployment that an entry boots; it is written with each deployment, for that one alone. */
const OF_THE_DEPLOYMENT: ReadonlySet<string> = new Set(['ostree', 'composefs', 'initrd']);
const OF_ONE_MACHINE = /^(?:root|boot)=(?:UUID|PARTUUID)=/i;

function reservedArgument(argument: string): Fault | undefined {
  const plain = argument.replaceAll('"', '');
  const [name = ''] = plain.split('=', 1);
  if (plain === '--') {
    return {
      reason: '"--" ends the arguments of the kernel: all that follows would be passed to init',
      expected: 'no such argument',
    };
  }
  if (plain.includes('=') && OF_THE_DEPLOYMENT.has(name)) {
    return {
      reason: `${quote(argument)} names what is booted, which each deployment has of its own`,
      expected: `no ${name}= argument`,
    };
  }
  return OF_ONE_MACHINE.test(plain)
    ? {
        reason: `${quote(argument)} names a disk of one machine, and would keep every other machine of the pool from booting`,
        expected: 'a name that each machine has, such as /dev/disk/by-label/root, or no such argument',
      }
    : undefined;
}

/**
 * What ends or changes a command of GRUB's (GRUB manual, "Quoting" of its shell-like scripting), in the line without
 * what it takes as it is.
 */
const FAULTS_OF_GRUB: readonly (readonly [pattern: RegExp, what: string, expected: string])[] = [
  [/[&|;<>{}]/, 'one of & | ; < > { } outside of double quotes', 'these between double quotes'],
  [/'/, 'a single quote that is not closed', 'single quotes in pairs'],
  [/(?:^|\s)#/, 'a comment', 'no argument that begins with #'],
];

/** GRUB reads the line as the rest of a `linux` command. */
function unreadableForGrub(line: string): Fault | undefined {
  const fault = (what: string, expected: string): Fault => ({
    reason: `${quote(line)} has ${what}: GRUB, which reads boot entries as commands, would lose what follows, ostree= too`,
    expected,
  });
  if (/\\(?:[\s"]|$)/.test(line)) {
    return fault('a backslash before a blank, a quote or its end', 'no backslash there');
  }
  const withoutEscapes = line.replaceAll(/\\./g, '\\');
  if (withoutEscapes.replaceAll(/'[^']*'/g, '').includes('$')) {
    return fault('a $, which begins a variable', 'no $, or \\$ where every node boots with GRUB');
  }
  // The quotes are in pairs: every other part is between them.
  const outside = withoutEscapes.split('"').filter((_, index) => index % 2 === 0);
  const bare = outside.join('"').replaceAll(/'[^']*'/g, '"');
  const [, what, expected] = FAULTS_OF_GRUB.find(([pattern]) => pattern.test(bare)) ?? [];
  return what === undefined || expected === undefined ? undefined : fault(what, expected);
}

function tooLong(own: readonly string[]): Fault | undefined {
  const bytes = Buffer.byteLength(own.join(' '));
  return bytes <= MOST_BYTES
    ? undefined
    : {
        reason: `have ${bytes} bytes: the kernel cuts its command line off at ${COMMAND_LINE}, and the host needs some of it`,
        expected: `at most ${MOST_BYTES} bytes`,
      };
}
