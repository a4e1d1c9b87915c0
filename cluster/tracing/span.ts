import { createHash, randomBytes } from 'node:crypto';
import type { ChangeId } from '../../api/change-id.ts';

/** 16 hexadecimal digits (W3C Trace Context, "parent-id"). */
export type SpanId = string & { readonly __brand: 'SpanId' };

/** A piece of work on a change that is over. */
export interface Span {
  /** One of few: what differs from span to span is an attribute. */
  readonly name:
    | 'render'
    | 'build'
    | 'rollout'
    | 'drain'
    | 'stage'
    | 'update'
    | 'apply'
    | 'reboot'
    | BuildStep;
  /** The trace that it is part of. */
  readonly change: ChangeId;
  /** What it is part of; absent for the rendering, with which a change begins. */
  readonly parent?: SpanId | undefined;
  /** By which parts of it name it; any where it has none. */
  readonly id?: SpanId | undefined;
  /** ms since the epoch. */
  readonly startedAt: number;
  readonly endedAt: number;
  /** Names, digests and counts: nothing that could hold a secret. */
  readonly attributes: SpanAttributes;
  /** The reason in a word, as a condition has it, where it failed. */
  readonly failure?: string | undefined;
}

/** The steps of a build. */
export type BuildStep = 'engine' | 'base' | 'layer' | 'push' | 'seal' | 'index' | 'proof';

interface SpanAttributes {
  readonly 'shale.pool'?: string;
  readonly 'shale.config'?: string;
  /** By digest. */
  readonly 'shale.image'?: string;
  readonly 'shale.build'?: string;
  /** Append, Relabel or Engine. */
  readonly 'shale.build.way'?: string;
  readonly 'shale.build.attempt'?: number;
  readonly 'shale.build.bytes_sent'?: number;
  readonly 'shale.build.bytes_mounted'?: number;
  /** In words, such as `Restart(chronyd.service)`. */
  readonly 'shale.actions'?: string;
  /** What is done of an update. */
  readonly 'shale.step'?: string;
  /** Succeeded, RolledBack or Failed. */
  readonly 'shale.result'?: string;
  readonly 'shale.nodes'?: number;
  readonly 'k8s.node.name'?: string;
}

/** Records what a process did. Fire and forget: it never fails the work that it records. */
export interface Tracer {
  record(span: Span): void;
  /** Sends what is not sent yet, within seconds; for a process that is about to end. Never throws. */
  flush(): Promise<void>;
}

/** Nobody listens. */
export const noTracer: Tracer = { record: () => undefined, flush: async () => undefined };

/**
 * Every process works out the ids of the spans that another process's are part of, so that a change is one trace and
 * nothing is handed on with it.
 */
export const spanIds = {
  /** With which a change of a pool begins. */
  render: (change: ChangeId, pool: string): SpanId => derived(change, 'render', pool),
  /** The way of a pool's nodes to one target. @param image by digest; undefined in standard mode. */
  rollout: (change: ChangeId, pool: string, image: string | undefined): SpanId =>
    derived(change, 'rollout', pool, image ?? ''),
  /** A node's update, which may begin in one boot and end in the next. @param image as of `rollout`. */
  update: (change: ChangeId, node: string, image: string | undefined): SpanId =>
    derived(change, 'update', node, image ?? ''),
  /** Of work that no other process has a part in. */
  any: (): SpanId => randomBytes(8).toString('hex') as SpanId,
};

function derived(...parts: readonly string[]): SpanId {
  return createHash('sha256').update(JSON.stringify(parts)).digest('hex').slice(0, 16) as SpanId;
}
