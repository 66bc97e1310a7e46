// The addresses of pages and forms, below where the dashboard is mounted.

const base = () => document.documentElement.dataset.base;
const part = encodeURIComponent;

export const names = () => `${base()}services/names.json`;
export const service = (name) => `${base()}services/${part(name)}/`;
export const replica = (name, number) => `${service(name)}replicas/${number}/`;
export const version = (name, number) => `${service(name)}versions/${number}/`;
export const edit = (name, number) => `${service(name)}edit?version=${number}`;
export const spec = (name, number) => `${service(name)}versions/${number}/spec`;
export const samples = (name, query) => `${service(name)}samples.json?${query}`;
export const terminate = (name, number) => `${replica(name, number)}terminate`;
export const steer = (name, verb) => `${service(name)}rollout/${verb}`;
export const plan = (name, number) => `${version(name, number)}plan.json`;
export const cancel = (id) => `${base()}operations/${id}/cancel`;
export const replicaLog = (id, which) => `${base()}logs/replica/${id}/${which}`;
export const operationLog = (id) => `${base()}logs/operation/${id}/download`;
export const retry = (id) => `${base()}operations/${id}/retry`;
export const signIn = () => `${document.documentElement.dataset.login}?next=${part(location.pathname + location.search)}`;
