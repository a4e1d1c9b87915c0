import { changeOf } from '../../api/change.ts';
import { type BuildStep, type Span, spanIds, type Tracer } from '../../cluster/tracing/span.ts';
import { asBuildFailure } from '../as-build-failure.ts';
import type { BuildFailure } from '../build-failure.ts';
import type { BuildJob, BuildResult } from './running-builds.ts';

/** Does a step of a build, and tells how long it took. */
export type Step = <T>(name: BuildStep, work: () => Promise<T>) => Promise<T>;

/** Nobody is told. */
export const untraced: Step = (_name, work) => work();

/** The trace of one attempt at a build. */
export interface BuildTrace {
  readonly step: Step;
  succeeded(result: BuildResult): void;
  failed(failure: BuildFailure): void;
}

/** Begins it, as a part of the change that the pool's rendering began. */
export function traceBuild(
  tracer: Tracer,
  { build, machineOSConfig, rendered }: BuildJob,
  attempt: number,
): BuildTrace {
  const pool = machineOSConfig.spec.machineConfigPool.name;
  const change = changeOf(rendered.metadata.name);
  const id = spanIds.any();
  const startedAt = Date.now();
  const attributes: Span['attributes'] = {
    'shale.pool': pool,
    'shale.config': rendered.metadata.name,
    'shale.build': build.metadata.name,
    'shale.build.attempt': attempt,
  };
  const attempted = { name: 'build', change, parent: spanIds.render(change, pool), id, startedAt } as const;
  return {
    async step(name, work) {
      const began = Date.now();
      const ended = (failure?: string) =>
        tracer.record({
          name,
          change,
          parent: id,
          startedAt: began,
          endedAt: Date.now(),
          attributes: {},
          ...(failure === undefined ? {} : { failure }),
        });
      try {
        const result = await work();
        ended();
        return result;
      } catch (error) {
        ended(asBuildFailure(error).reason);
        throw error;
      }
    },
    succeeded({ image, way, bytes }) {
      tracer.record({
        ...attempted,
        endedAt: Date.now(),
        attributes: {
          ...attributes,
          'shale.image': image,
          'shale.build.way': way,
          'shale.build.bytes_sent': bytes.sent,
          'shale.build.bytes_mounted': bytes.mounted,
        },
      });
    },
    failed({ reason }) {
      tracer.record({ ...attempted, endedAt: Date.now(), attributes, failure: reason });
    },
  };
}
