import { changeOf } from '../../api/change-id.ts';
import { type BuildStep, type Span, spanIds, type Tracer } from '../../cluster/tracing/span.ts';
import { asBuildFailure, type BuildFailure } from '../build-failure.ts';
import type { BuildResult } from '../status.ts';

/** Runs a step of a build and records how long it took. */
export type StepRunner = <T>(name: BuildStep, work: () => Promise<T>) => Promise<T>;

/** Runs a step and records nothing. */
export const untraced: StepRunner = (_name, work) => work();

/** The trace of one attempt at a build: a span below that of the rendering which the change started with. */
export class BuildTrace {
  readonly #tracer: Tracer;
  readonly #span: Pick<Span, 'name' | 'change' | 'parent' | 'id' | 'startedAt' | 'attributes'>;

  constructor(
    tracer: Tracer,
    attempted: {
      readonly pool: string;
      /** Name of the rendered config. */
      readonly config: string;
      /** Name of the MachineOSBuild. */
      readonly build: string;
      readonly attempt: number;
    },
  ) {
    const { pool, config, build, attempt } = attempted;
    const change = changeOf(config);
    this.#tracer = tracer;
    this.#span = {
      name: 'build',
      change,
      parent: spanIds.render(change, pool),
      id: spanIds.any(),
      startedAt: Date.now(),
      attributes: {
        'shale.pool': pool,
        'shale.config': config,
        'shale.build': build,
        'shale.build.attempt': attempt,
      },
    };
  }

  async step<T>(name: BuildStep, work: () => Promise<T>): Promise<T> {
    const startedAt = Date.now();
    try {
      const result = await work();
      this.#endStep(name, startedAt);
      return result;
    } catch (error) {
      this.#endStep(name, startedAt, asBuildFailure(error).reason);
      throw error;
    }
  }

  succeeded({ image, way, bytes }: BuildResult): void {
    this.#tracer.record({
      ...this.#span,
      endedAt: Date.now(),
      attributes: {
        ...this.#span.attributes,
        'shale.image': image,
        'shale.build.way': way,
        'shale.build.bytes_sent': bytes.sent,
        'shale.build.bytes_mounted': bytes.mounted,
      },
    });
  }

  failed({ reason }: BuildFailure): void {
    this.#tracer.record({ ...this.#span, endedAt: Date.now(), failure: reason });
  }

  #endStep(name: BuildStep, startedAt: number, failure?: string): void {
    const { change, id: parent } = this.#span;
    this.#tracer.record({
      name,
      change,
      parent,
      failure,
      startedAt,
      endedAt: Date.now(),
      attributes: {},
    });
  }
}
