import type { Exchange } from './recording-extension.ts';

/** Letters and digits of Kubernetes' random suffixes (apimachinery, util/rand); names of ours have vowels. */
const SUFFIX = '[bcdfghjklmnpqrstvwxz2456789]{5}';

/** What differs from run to run, each by the text that stands for it. */
const RANDOM: readonly (readonly [RegExp, string])[] = [
  // A bootstrap token and the hash of the cluster's CA (KubeadmConfig, joinConfiguration.discovery).
  [/\b[a-z0-9]{6}\.[a-z0-9]{16}\b/g, 'abcdef.0123456789abcdef'],
  [/\bsha256:[0-9a-f]{64}\b/g, `sha256:${'0'.repeat(64)}`],
  [/\b127\.0\.0\.1:\d+\b/g, '127.0.0.1:6443'],
  [/\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ/g, '2026-01-01T00:00:00Z'],
];

/**
 * Makes the recording of one run equal to that of any other in which the same was said.
 *
 * @param prefix what the names of all MachineSets and Machines begin with.
 * @returns the exchanges, without those that repeat the one before.
 */
export function stableConversation(exchanges: readonly Exchange[], prefix: string): readonly Exchange[] {
  const names = new Map<string, string>();
  const texts = exchanges.map((exchange) => stableText(JSON.stringify(exchange), prefix, names));
  const kept = texts.filter((text, index) => text !== texts[index - 1]);
  return kept.map((text) => JSON.parse(text) as Exchange);
}

function stableText(text: string, prefix: string, names: Map<string, string>): string {
  const suffixes = new RegExp(`(?<=\\b${prefix}(?:-[a-z]{4}\\d)?-)${SUFFIX}(?=\\b)`, 'g');
  // Twice: a Machine's name has a suffix after its MachineSet's.
  const named = [1, 2].reduce((before) => before.replace(suffixes, (suffix) => nameFor(suffix, names)), text);
  const hashed = named.replace(new RegExp(`(?<="\\d+-)${SUFFIX}(?=")`, 'g'), (suffix) =>
    nameFor(suffix, names),
  );
  return RANDOM.reduce((before, [pattern, to]) => before.replace(pattern, to), hashed);
}

/** In the order of appearance: `name1`, which no random suffix is. */
function nameFor(suffix: string, names: Map<string, string>): string {
  const known = names.get(suffix) ?? `name${names.size + 1}`;
  names.set(suffix, known);
  return known;
}
