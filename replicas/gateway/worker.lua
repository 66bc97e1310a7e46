-- Loaded into each worker: holds requests while a service has no ready replica, ends with its master, moves members.

local held = {}

-- Wait until the backend has a server, at most `seconds`; proc.held_BACKEND says how many requests wait.
core.register_action("hold", { "http-req" }, function(txn, backend, seconds)
  local name, left = backend, tonumber(seconds) * 20
  if txn.f:nbsrv(name) > 0 then
    return
  end
  held[name] = (held[name] or 0) + 1
  txn:set_var("proc.held_" .. name, held[name])
  while left > 0 and txn.f:nbsrv(name) == 0 do
    core.msleep(50)
    left = left - 1
  end
  held[name] = held[name] - 1
  txn:set_var("proc.held_" .. name, held[name])
end, 2)

local function parent()
  local file = io.open("/proc/self/stat", "r")
  if file == nil then
    return nil
  end
  local text = file:read("*a")
  file:close()
  return text:match("^.*%) %S (%d+)")
end

-- A worker outlives a killed master until its last connection ends; what belongs to the control plane must not.
core.register_task(function()
  local first = parent()
  while first ~= nil do
    core.sleep(1)
    if parent() ~= first then
      os.exit(1)
    end
  end
end)

-- `member BACKEND SERVER maint|ready`: as `set server`, which a worker refuses that serves only what it had begun.
core.register_cli({ "member" }, "member <backend> <server> maint|ready", function(applet, _, backend, server, state)
  local proxy = core.backends[backend]
  local found = proxy and proxy.servers[server]
  if found == nil then
    applet:send("No such server.\n")
  elseif state == "maint" then
    found:set_maint()
  else
    found:set_ready()
    found:check_force_up()
  end
end)
