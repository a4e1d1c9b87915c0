import { createHash } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { gunzipSync, gzipSync } from 'node:zlib';
import { z } from 'zod';
import { parseTry, type TryRequest } from '../api/annotation-requests.ts';
import type { MachineConfig, MachineConfigSpec } from '../api/machine-config.ts';
import { annotations } from '../api/names.ts';
import type { NewObject } from '../api/object.ts';
import { present } from '../api/present.ts';

/** Of all annotations of an object, in bytes (TotalAnnotationSizeLimitB of Kubernetes); with room for others. */
const LONGEST_REQUEST = 192 * 1024;
/** Bytes; etcd takes no larger object, so no annotation needs more. */
const LARGEST_BEFORE = 4 * 1024 * 1024;

const Strings = z.record(z.string(), z.string());
/** What of a MachineConfig is restored; the rest belongs to the API server. */
const Before = z.object({
  labels: Strings.exactOptional(),
  annotations: Strings.exactOptional(),
  spec: z.looseObject({}),
});

/** Who tries a change, and until when it is confirmed or undone. */
export type TryTerms = Pick<TryRequest, 'id' | 'until' | 'by' | 'at'>;

/** @returns whether a change of the MachineConfig is undone unless it is confirmed. */
export function isTried({ metadata }: MachineConfig): boolean {
  return metadata.annotations?.[annotations.try] !== undefined;
}

/** @returns the request of a MachineConfig's annotation; undefined without one. @throws Error if it can't be read. */
export function tryOf({ metadata }: MachineConfig): TryRequest | undefined {
  const text = metadata.annotations?.[annotations.try];
  return text === undefined ? undefined : parseTry(text);
}

/** @returns whether a MachineConfig has the labels and the spec of another one already. */
export function isSameConfig(config: MachineConfig, wanted: NewObject<MachineConfig>): boolean {
  return (
    isDeepStrictEqual(config.metadata.labels ?? {}, wanted.metadata.labels ?? {}) &&
    isDeepStrictEqual(config.spec, wanted.spec)
  );
}

/**
 * Annotates a MachineConfig that is to be written with what undoes it.
 *
 * @param before the MachineConfig of that name; undefined: there is none.
 * @throws Error if what was before is too large for an annotation.
 */
export function triedConfig(
  before: MachineConfig | undefined,
  wanted: NewObject<MachineConfig>,
  terms: TryTerms,
): MachineConfig {
  const { name = '', labels } = wanted.metadata;
  const kept = { ...before?.metadata.annotations, ...wanted.metadata.annotations };
  const changesSpec = !isDeepStrictEqual(before?.spec, wanted.spec);
  const generation = before === undefined ? 1 : (before.metadata.generation ?? 1) + (changesSpec ? 1 : 0);
  const { labels: _labels, ...own } = before?.metadata ?? {};
  const metadata = { ...own, name, ...present({ labels }), annotations: kept };
  const config: MachineConfig = { ...wanted, metadata };
  return annotated(config, {
    ...terms,
    generation,
    metadata: '',
    ...present({ before: before === undefined ? undefined : packed(before) }),
  });
}

/**
 * @param written what the API server made of it: a mutating webhook may have added labels.
 * @returns the MachineConfig with the annotation as it should be; undefined if it is so.
 */
export function withSettledTry(written: MachineConfig): MachineConfig | undefined {
  const request = tryOf(written);
  if (request === undefined || !wasEdited(written, request)) return undefined;
  return annotated(written, { ...request, generation: written.metadata.generation ?? 1 });
}

function annotated(config: MachineConfig, request: TryRequest): MachineConfig {
  const text = JSON.stringify({ ...request, metadata: metadataDigest(config) });
  if (text.length > LONGEST_REQUEST)
    throw new Error(
      `MachineConfig ${config.metadata.name}: what it was before has ${Math.ceil(text.length / 1024)} KiB, which is too much to be recorded in an annotation (${LONGEST_REQUEST / 1024} KiB)`,
    );
  const metadata = {
    ...config.metadata,
    annotations: { ...config.metadata.annotations, [annotations.try]: text },
  };
  return { ...config, metadata };
}

function packed({ metadata, spec }: MachineConfig): string {
  const before = { ...present({ labels: metadata.labels, annotations: metadata.annotations }), spec };
  return gzipSync(JSON.stringify(before)).toString('base64');
}

/** What becomes of a MachineConfig that may be one that is tried. */
export type TryDecision =
  | { readonly kind: 'none' }
  /** @param until ms since the epoch. */
  | { readonly kind: 'waits'; readonly until: number; readonly request: TryRequest }
  | { readonly kind: 'restore'; readonly to: MachineConfig; readonly request: TryRequest }
  | { readonly kind: 'delete'; readonly request: TryRequest }
  /** Somebody made it their own: nothing is undone. */
  | { readonly kind: 'edited'; readonly why: string; readonly request: TryRequest }
  | { readonly kind: 'unreadable'; readonly why: string };

/**
 * Decides whether a change is undone: at its end, exactly, and only if nobody has edited the MachineConfig since.
 *
 * @param now ms since the epoch.
 */
export function decideTry(config: MachineConfig, now: number): TryDecision {
  try {
    const request = tryOf(config);
    if (request === undefined) return { kind: 'none' };
    const until = Date.parse(request.until);
    // Not earlier: until the command has seen what was written, a webhook's label looks like an edit.
    if (now < until) return { kind: 'waits', until, request };
    if (wasEdited(config, request)) return { kind: 'edited', why: whatWasEdited(config, request), request };
    const to = configBefore(config, request);
    return to === undefined ? { kind: 'delete', request } : { kind: 'restore', to, request };
  } catch (error) {
    const why = error instanceof Error ? error.message.replaceAll(/\s+/g, ' ') : String(error);
    return { kind: 'unreadable', why };
  }
}

/** @returns the MachineConfig as it was before; undefined if it did not exist. @throws Error if that can't be read. */
export function configBefore(
  { metadata, ...config }: MachineConfig,
  { before }: TryRequest,
): MachineConfig | undefined {
  if (before === undefined) return undefined;
  const json = gunzipSync(Buffer.from(before, 'base64'), { maxOutputLength: LARGEST_BEFORE });
  const { spec, ...names } = Before.parse(JSON.parse(json.toString('utf8')));
  const { labels: _labels, annotations: _annotations, ...own } = metadata;
  // The spec is the API server's own: it is not parsed, so that nothing of it is lost.
  return { ...config, metadata: { ...own, ...present(names) }, spec: spec as MachineConfigSpec };
}

function wasEdited(config: MachineConfig, { generation, metadata }: TryRequest): boolean {
  return (config.metadata.generation ?? 1) !== generation || metadataDigest(config) !== metadata;
}

function whatWasEdited({ metadata }: MachineConfig, { generation }: TryRequest): string {
  return (metadata.generation ?? 1) === generation ? 'its labels or annotations' : 'its spec';
}

/** The annotation itself is none of what it is about. */
function metadataDigest({ metadata: { labels = {}, annotations: all = {} } }: MachineConfig): string {
  const { [annotations.try]: _own, ...others } = all;
  const sorted = [labels, others].map((strings) => Object.entries(strings).toSorted());
  return createHash('sha256').update(JSON.stringify(sorted)).digest('hex');
}
