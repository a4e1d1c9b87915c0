import type { Environment } from '@marcbachmann/cel-js';
import type { Attributes, User } from '../../access/attributes.ts';

/** Answers what a user may do, as RBAC stands when it is asked. */
export type IsAllowed = (attributes: Attributes) => boolean;

/** What a check is about, apart from who asks and the verb. */
type Subject = Omit<Extract<Attributes, { type: 'resource' }>, 'type' | 'user' | 'verb'>;

/** The variable `authorizer` of expressions: what the user of the request may do (library/authz.go). */
export class Authorizer {
  readonly isAllowed: IsAllowed;
  readonly user: User;
  constructor(isAllowed: IsAllowed, user: User) {
    this.isAllowed = isAllowed;
    this.user = user;
  }
}

class GroupCheck {
  readonly authorizer: Authorizer;
  readonly group: string;
  constructor(authorizer: Authorizer, group: string) {
    this.authorizer = authorizer;
    this.group = group;
  }
}

class ResourceCheck {
  readonly authorizer: Authorizer;
  readonly subject: Subject;
  constructor(authorizer: Authorizer, subject: Subject) {
    this.authorizer = authorizer;
    this.subject = subject;
  }

  with(more: Partial<Subject>): ResourceCheck {
    return new ResourceCheck(this.authorizer, { ...this.subject, ...more });
  }
}

class Decision {
  readonly allowed: boolean;
  constructor(allowed: boolean) {
    this.allowed = allowed;
  }
}

/** Checks of resources; those of paths, service accounts and selectors are not offered. */
export function registerAuthorizer(environment: Environment): Environment {
  return environment
    .registerType('kubernetes.authorization.Authorizer', Authorizer)
    .registerType('kubernetes.authorization.GroupCheck', GroupCheck)
    .registerType('kubernetes.authorization.ResourceCheck', ResourceCheck)
    .registerType('kubernetes.authorization.Decision', Decision)
    .registerFunction(
      'kubernetes.authorization.Authorizer.group(string): kubernetes.authorization.GroupCheck',
      (authorizer: Authorizer, group: string) => new GroupCheck(authorizer, group),
    )
    .registerFunction(
      'kubernetes.authorization.GroupCheck.resource(string): kubernetes.authorization.ResourceCheck',
      ({ authorizer, group }: GroupCheck, resource: string) =>
        new ResourceCheck(authorizer, { group, resource, subresource: '', namespace: '', name: '' }),
    )
    .registerFunction(
      'kubernetes.authorization.ResourceCheck.subresource(string): kubernetes.authorization.ResourceCheck',
      (check: ResourceCheck, subresource: string) => check.with({ subresource }),
    )
    .registerFunction(
      'kubernetes.authorization.ResourceCheck.namespace(string): kubernetes.authorization.ResourceCheck',
      (check: ResourceCheck, namespace: string) => check.with({ namespace }),
    )
    .registerFunction(
      'kubernetes.authorization.ResourceCheck.name(string): kubernetes.authorization.ResourceCheck',
      (check: ResourceCheck, name: string) => check.with({ name }),
    )
    .registerFunction(
      'kubernetes.authorization.ResourceCheck.check(string): kubernetes.authorization.Decision',
      ({ authorizer: { isAllowed, user }, subject }: ResourceCheck, verb: string) =>
        new Decision(isAllowed({ type: 'resource', user, verb, ...subject })),
    )
    .registerFunction(
      'kubernetes.authorization.Decision.allowed(): bool',
      ({ allowed }: Decision) => allowed,
    );
}
