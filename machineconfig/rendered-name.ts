import { createHash } from 'node:crypto';
import type { MachineConfig } from '../api/machine-config.ts';
import { annotations } from '../api/names.ts';
import { canonicalJson } from './canonical-json.ts';

type Annotations = Readonly<Record<string, string>>;

/** As long as MCO's hash. */
const HASH_DIGITS = 32;
const NAME = new RegExp(`^rendered-.+-([0-9a-f]{${HASH_DIGITS}})$`);

/**
 * A config with different marks has another name (docs/decisions/0028-inputs-of-a-cost.md); and so has one of another
 * stream, because the pool reports the stream of what its nodes run.
 *
 * @param canonicalSpec as canonicalJson writes it. @param recorded annotations of the rendered config.
 */
export function renderedName(
  pool: string,
  canonicalSpec: Uint8Array | string,
  recorded: Annotations,
): string {
  return `rendered-${pool}-${hashOf(canonicalSpec, recorded)}`;
}

/**
 * Anyone who may create MachineConfigs may create one of the name that a pool will have as its target, or change it.
 * What a name is a digest of is computed again, and not believed, by each process that is about to use the config.
 *
 * @returns whether a config has the name of a rendered one, but not the content that it is a digest of.
 */
export function isForged(config: MachineConfig): boolean {
  const hash = NAME.exec(config.metadata.name)?.[1];
  return hash !== undefined && hash !== hashOfConfig(config);
}

/** @returns whether a config has the name that rendering its content for this pool gives it. */
export function isNamedFor(pool: string, config: MachineConfig): boolean {
  return config.metadata.name === `rendered-${pool}-${hashOfConfig(config)}`;
}

/** The message about a config that {@link isForged}. */
export function forgedMessage(name: string): string {
  return `MachineConfig ${name}: its content is not that which its name is a digest of, so it is not used; the operator restores it, or delete it`;
}

function hashOfConfig({ spec, metadata }: MachineConfig): string {
  return hashOf(canonicalJson(spec), metadata.annotations ?? {});
}

function hashOf(
  canonicalSpec: Uint8Array | string,
  {
    [annotations.noReboot]: without = '',
    [annotations.actions]: others = '',
    [annotations.osImageStream]: stream = '',
  }: Annotations,
): string {
  const marks = without + others + stream;
  return createHash('sha256').update(canonicalSpec).update(marks).digest('hex').slice(0, HASH_DIGITS);
}
