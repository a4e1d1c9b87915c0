import type { MachineConfig } from '../api/machine-config.ts';
import { labels } from '../api/names.ts';
import type { IgnitionConfig, IgnitionFile } from './ignition/config.ts';
import { type CheckedContents, DEFAULT_LIMITS, type Limits } from './ignition/contents.ts';
import { parseIgnition } from './ignition/parse.ts';
import { bootEntryFault } from './kernel-arguments.ts';
import { isKernelType, KERNEL_TYPES, SUPPORTED_EXTENSIONS } from './os-packages.ts';
import { type Problem, quote } from './problem.ts';
import { registryFileWarnings } from './registry-files.ts';

export interface ParsedMachineConfig {
  readonly name: string;
  /** Absent when the MachineConfig has no spec.config, or an invalid one. */
  readonly ignition?: IgnitionConfig;
  readonly problems: readonly Problem[];
  /**
   * What is valid and has no effect, or not the one that was meant: unknown fields, fields of a later spec version,
   * what only Ignition reads, and files about registries with what the container runtime refuses or ignores.
   */
  readonly warnings: readonly Problem[];
}

/**
 * Validates one MachineConfig as MCO's controller does before it merges anything.
 *
 * @returns its Ignition config, every problem, and every warning of a config that has no problem.
 */
export function parseMachineConfig(
  config: MachineConfig,
  limits: Limits = DEFAULT_LIMITS,
  checked?: CheckedContents,
): ParsedMachineConfig {
  const { name } = config.metadata;
  const problems: Problem[] = [];
  const { kernelType = '', kernelArguments, extensions, config: raw } = config.spec;
  if (config.metadata.labels === undefined) {
    problems.push({
      path: 'metadata.labels',
      reason: 'are missing',
      expected: `the label ${labels.role} or another that a pool selects`,
    });
  }
  if (kernelType !== '' && !isKernelType(kernelType)) {
    problems.push({
      path: 'spec.kernelType',
      reason: `is ${quote(kernelType)}`,
      expected: KERNEL_TYPES.join(', '),
    });
  }
  for (const [index, extension] of (extensions ?? []).entries()) {
    if (!SUPPORTED_EXTENSIONS.has(extension)) {
      problems.push({
        path: `spec.extensions[${index}]`,
        reason: `${quote(extension)} is not a known extension`,
        expected: [...SUPPORTED_EXTENSIONS].join(', '),
      });
    }
  }
  for (const [index, entry] of (kernelArguments ?? []).entries()) {
    const fault = bootEntryFault(entry);
    if (fault !== undefined) problems.push({ path: `spec.kernelArguments[${index}]`, ...fault });
  }
  if (raw === undefined || raw === null) {
    return { name, problems, warnings: [] };
  }
  const parsed = parseIgnition(raw, limits, checked);
  return parsed.ok
    ? {
        name,
        ignition: parsed.config,
        problems: [...problems, ...keysWithReturns(parsed.config)],
        warnings: [
          ...parsed.warnings,
          ...readByIgnitionAlone(parsed.config),
          ...registryFileWarnings(parsed.config, limits),
        ],
      }
    : { name, problems: [...problems, ...parsed.problems], warnings: [] };
}

/**
 * What MachineConfigs were parsed to before. Most renderings follow a change of one of many, and a custom pool has all
 * of worker's. An object must not be changed once it was parsed, as those of a cache are not: its next version is
 * another one.
 */
export class ParsedConfigs {
  readonly #known = new WeakMap<
    MachineConfig,
    { readonly limits: Limits; readonly parsed: ParsedMachineConfig }
  >();
  /** Contents of files that were found valid. */
  readonly checked: CheckedContents = new WeakMap();
  /** Files as a rendered config has them. */
  readonly settled = new WeakMap<IgnitionFile, IgnitionFile>();
  /** Canonical JSON of files and units. */
  readonly written = new WeakMap<object, Uint8Array>();

  /** @returns see {@link parseMachineConfig}. */
  parse(config: MachineConfig, limits: Limits): ParsedMachineConfig {
    const known = this.#known.get(config);
    if (known !== undefined && sameLimits(known.limits, limits)) return known.parsed;
    const parsed = parseMachineConfig(config, limits, this.checked);
    this.#known.set(config, { limits, parsed });
    return parsed;
  }
}

function sameLimits(one: Limits, other: Limits): boolean {
  return one.fileBytes === other.fileBytes && one.configBytes === other.configBytes;
}

/** Sections of `ignition` that say how Ignition itself fetches configs at the first boot of a machine. */
const FIRST_BOOT = ['config', 'security', 'proxy', 'timeouts'] as const;

function readByIgnitionAlone({ ignition }: IgnitionConfig): Problem[] {
  return FIRST_BOOT.filter((section) => hasContent(ignition[section])).map((section) => ({
    path: `$.ignition.${section}`,
    reason: 'has no effect: only Ignition reads it, when it provisions a machine',
    expected: 'no such section; files and units themselves',
  }));
}

function hasContent(value: unknown): boolean {
  if (typeof value !== 'object' || value === null)
    return value !== undefined && value !== null && value !== '';
  return Object.values(value).some(hasContent);
}

/**
 * A carriage return within a key isn't the end of a line for sshd, but for many who show it: what a reviewer sees would
 * be another key. This is checked where MachineConfigs are rendered and not on nodes: they must be able to leave a
 * config from before this check.
 */
function keysWithReturns({ passwd }: IgnitionConfig): Problem[] {
  return (passwd?.users ?? []).flatMap(({ sshAuthorizedKeys = [] }, user) =>
    sshAuthorizedKeys.flatMap((key, index) =>
      /\r(?!\n)/.test(key.trim())
        ? [
            {
              path: `$.passwd.users[${user}].sshAuthorizedKeys[${index}]`,
              reason: 'has a carriage return within a line',
              expected: 'one key a line',
            },
          ]
        : [],
    ),
  );
}
