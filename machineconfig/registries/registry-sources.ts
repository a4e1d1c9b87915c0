import type { ImageConfig } from '../../api/image-sources.ts';
import { imageNames } from '../../oci/image-names.ts';
import type { Problem, Validated } from '../problem.ts';

/** The validated registry sources of the cluster's Image object. */
export interface RegistrySources {
  readonly insecure: readonly string[];
  readonly blocked: readonly string[];
  readonly allowed: readonly string[];
  /** Undefined: the distribution's own. */
  readonly search?: readonly string[];
}

/**
 * Reads `spec.registrySources` of the Image object (MCO, container-runtime-config controller).
 *
 * @returns the lists, or every problem: invalid scopes, and allowed registries beside blocked ones.
 */
export function readRegistrySources(image: ImageConfig | undefined): Validated<{ sources: RegistrySources }> {
  const { insecureRegistries, blockedRegistries, allowedRegistries, containerRuntimeSearchRegistries } =
    image?.spec.registrySources ?? {};
  const lists = { insecureRegistries, blockedRegistries, allowedRegistries };
  const problems = Object.entries(lists).flatMap(([field, scopes = []]) => malformed(field, scopes));
  problems.push(...unsearchable(containerRuntimeSearchRegistries ?? []));
  if ((allowedRegistries ?? []).length > 0 && (blockedRegistries ?? []).length > 0) {
    problems.push({
      path: at('allowedRegistries'),
      reason: 'is set beside blockedRegistries',
      expected: 'only one of the two: what is not allowed is blocked already',
    });
  }
  if (problems.length > 0) return { ok: false, problems };
  return {
    ok: true,
    sources: {
      insecure: insecureRegistries ?? [],
      blocked: blockedRegistries ?? [],
      allowed: allowedRegistries ?? [],
      ...(containerRuntimeSearchRegistries === undefined || containerRuntimeSearchRegistries.length === 0
        ? {}
        : { search: containerRuntimeSearchRegistries }),
    },
  };
}

const at = (field: string): string => `Image cluster, spec.registrySources.${field}`;

function malformed(field: string, scopes: readonly string[]): Problem[] {
  return scopes
    .filter((scope) => !imageNames.scope.test(scope))
    .map((scope) => ({
      path: at(field),
      reason: `${JSON.stringify(scope)} is no registry or repository`,
      expected: 'host[:port][/repository], or *.domain',
    }));
}

/** A short name is looked for in whole registries; the runtime refuses the whole file for anything else. */
function unsearchable(registries: readonly string[]): Problem[] {
  return registries
    .filter((registry) => !imageNames.mirror.test(registry) || registry.includes('/'))
    .map((registry) => ({
      path: at('containerRuntimeSearchRegistries'),
      reason: `${JSON.stringify(registry)} is no registry`,
      expected: 'host[:port]',
    }));
}
