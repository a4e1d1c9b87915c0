import { isDeepStrictEqual } from 'node:util';
import { type Problem, quote, type Validated } from '../problem.ts';
import type { IgnitionConfig } from './config.ts';
import { ignition3 } from './config.ts';
import { type CheckedContents, ContentsReader, DEFAULT_LIMITS, type Limits } from './contents.ts';
import { readBySchema } from './read.ts';
import { Report } from './report.ts';
import { type Spec2Minor, translateSpec2 } from './spec-2.ts';
import { validateConfig } from './validate.ts';

/** The version that every parsed config has. */
export const IGNITION_VERSION = '3.5.0';

const SUPPORTED = '3.0.0 to 3.5.0, or 2.0.0 to 2.2.0';

/**
 * Parses and validates an Ignition config as MCO does: 3.0.0 to 3.5.0 as they are, 2.0.0 to 2.2.0 translated; anything
 * else is refused. `MachineConfig.spec.config` without any content is no Ignition config: leave it out.
 *
 * @param raw `spec.config` from the API: any JSON value, not trusted
 * @param limits for decompressed contents
 * @param checked see ContentsReader
 * @returns the config in its 3.5.0 form, or every problem found; it never throws.
 */
export function parseIgnition(
  raw: unknown,
  limits: Limits = DEFAULT_LIMITS,
  checked?: CheckedContents,
): Validated<{ config: IgnitionConfig; warnings: readonly Problem[] }> {
  const version = versionOf(raw);
  if ('problem' in version) {
    return { ok: false, problems: [version.problem] };
  }
  const report = new Report();
  const config =
    version.major === 2
      ? translateSpec2(raw, version.minor, report)
      : readBySchema(ignition3, raw, version, report);
  // An Ignition 2 config has other paths once it is translated; its own problems come first.
  if (version.major === 3 || report.problems.length === 0) {
    // ign-converter makes 3.0 of spec 2, and Ignition checks that as 3.0.
    const minor = version.major === 2 ? 0 : version.minor;
    validateReadable(config, new ContentsReader(limits, checked), report, minor);
  }
  return report.problems.length === 0
    ? {
        ok: true,
        config: { ...config, ignition: { ...config.ignition, version: IGNITION_VERSION } },
        warnings: report.warnings,
      }
    : { ok: false, problems: report.problems };
}

/** Ignores problems of placeholders: the value that could not be read has its own problem. */
function validateReadable(
  config: IgnitionConfig,
  contents: ContentsReader,
  report: Report,
  minor: number,
): void {
  const unreadable = new Set(report.problems.map((problem) => problem.path));
  const validation = new Report();
  validateConfig(config, contents, validation, minor);
  report.warnings.push(...validation.warnings);
  for (const problem of validation.problems) {
    if (!pathAndParents(problem.path).some((path) => unreadable.has(path))) report.problems.push(problem);
  }
}

/** `$.a[1].b`, `$.a[1]`, `$.a` and `$`. */
function pathAndParents(path: string): string[] {
  return [path, ...[...path.matchAll(/[.[]/g)].map((separator) => path.slice(0, separator.index))];
}

type Version =
  | { readonly major: 2; readonly minor: Spec2Minor }
  | { readonly major: 3; readonly minor: number };

/** Ignition compares the whole version: 3.5.1 or 3.5.0-experimental are unknown. */
function versionOf(raw: unknown): Version | { readonly problem: Problem } {
  const version = fieldOf(fieldOf(raw, 'ignition'), 'version');
  const path = '$.ignition.version';
  if (typeof version !== 'string') {
    return { problem: { path, reason: 'is missing', expected: SUPPORTED } };
  }
  const [, major, minor] = /^([23])\.([0-5])\.0$/.exec(version) ?? [];
  switch (`${major}.${minor}`) {
    case '2.0':
      return { major: 2, minor: 0 };
    case '2.1':
      return { major: 2, minor: 1 };
    case '2.2':
      return { major: 2, minor: 2 };
  }
  if (major === '3') {
    return { major: 3, minor: Number(minor) };
  }
  return { problem: { path, reason: `${quote(version)} is not a supported version`, expected: SUPPORTED } };
}

/** A key without regard to case, as the whole config is read. */
function fieldOf(json: unknown, name: string): unknown {
  if (typeof json !== 'object' || json === null || Array.isArray(json)) {
    return undefined;
  }
  return Object.entries(json).findLast(([key]) => key.toLowerCase() === name)?.[1];
}

/** Every Ignition in use reads 3.2.0 (2.7 of 2020); each next one is read by fewer. */
const VERSIONS = ['3.2.0', '3.3.0', '3.4.0'] as const;

/**
 * Finds the version by which a config can be read by as many releases of Ignition as possible: a release refuses a
 * version that is newer than itself, also if nothing new is in the config. Machines may boot an image that is years
 * old.
 *
 * @param config a valid one.
 * @returns the lowest version, from 3.2.0, in which the config means the same.
 */
export function lowestIgnitionVersion(config: IgnitionConfig): string {
  const as = (version: string) => parseIgnition({ ...config, ignition: { ...config.ignition, version } });
  const meant = as(IGNITION_VERSION);
  const isEnough = (version: string) => {
    const read = as(version);
    return read.ok && meant.ok && isDeepStrictEqual(read.config, meant.config);
  };
  return VERSIONS.find(isEnough) ?? IGNITION_VERSION;
}
