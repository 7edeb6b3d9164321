local HEADER = STRUCTURES.FrameHeader.bytes
local lanecast = Proto("lanecast", "lanecast")
local fields, kinds = {}, {}

for number, layout in pairs(LAYOUTS) do
  kinds[number] = layout.name
end
local INTEGERS = {
  [1] = ProtoField.uint8, [2] = ProtoField.uint16, [4] = ProtoField.uint32, [8] = ProtoField.uint64,
}
for _, structure in pairs(STRUCTURES) do
  for _, field in ipairs(structure.fields) do
    local name, filter, bytes, is_id = field[1], field[2], field[4], field[5]
    if bytes == 16 then
      fields[filter] = ProtoField.ipv6(filter, name)
    elseif filter == "lanecast.frame_header.kind" then
      fields[filter] = ProtoField.uint8(filter, name, base.DEC, kinds)
    else
      fields[filter] = INTEGERS[bytes](filter, name, is_id and base.HEX or base.DEC)
    end
  end
end
local topic_name = ProtoField.string("lanecast.topic", "topic")
local flag_name = ProtoField.string("lanecast.flag", "flag")
local payload = ProtoField.bytes("lanecast.payload", "payload")
local sealed = ProtoField.bytes("lanecast.sealed", "sealed frame")
local all = { topic_name, flag_name, payload, sealed }
for _, field in pairs(fields) do
  all[#all + 1] = field
end
lanecast.fields = all
local malformed = ProtoExpert.new("lanecast.malformed", "malformed", expert.group.MALFORMED,
  expert.severity.ERROR)
local reset = ProtoExpert.new("lanecast.reset", "reset", expert.group.SEQUENCE, expert.severity.WARN)
lanecast.experts = { malformed, reset }

-- Adds a structure's fields; returns their values by name.
local function add_structure(tree, structure, buffer, offset)
  local values = {}
  for _, field in ipairs(structure.fields) do
    local name, filter, at, bytes = field[1], field[2], field[3], field[4]
    local range = buffer(offset + at, bytes)
    if bytes == 16 then
      tree:add(fields[filter], range)
    else
      tree:add_le(fields[filter], range)
      if bytes <= 4 then values[name] = range:le_uint() end
    end
  end
  return values
end

-- Adds the names of the flags that are set, or of the reason; returns them in one text.
local function add_flags(tree, flags, is_reason, set, range)
  local names = ""
  for _, flag in ipairs(flags) do
    local is_set = is_reason and set == flag[1] or not is_reason and bit.band(set, flag[1]) ~= 0
    if is_set then
      tree:add(flag_name, range, flag[2])
      names = names .. " " .. flag[2]
    end
  end
  return names
end

-- Adds names, each after its length; returns their number.
local function add_names(tree, buffer, offset, last)
  local count = 0
  while offset + 2 <= last do
    local length = buffer(offset, 2):le_uint()
    if length == 0 or offset + 2 + length > last then
      tree:add_proto_expert_info(malformed)
      break
    end
    tree:add(topic_name, buffer(offset + 2, length))
    offset, count = offset + 2 + length, count + 1
  end
  return count
end

local function padded(length)
  return math.floor((length + 3) / 4) * 4
end

local READ = {}

function READ.one(tree, structure, buffer, offset, last)
  if offset + structure.bytes > last then
    tree:add_proto_expert_info(malformed)
    return last
  end
  add_structure(tree, structure, buffer, offset)
  return offset + structure.bytes
end

function READ.list(tree, structure, buffer, offset, last)
  local name, count = structure.name, 0
  while offset + structure.bytes <= last do
    local entry = tree:add(lanecast, buffer(offset, structure.bytes), name)
    add_structure(entry, structure, buffer, offset)
    offset, count = offset + structure.bytes, count + 1
  end
  return last, count .. " " .. name
end

function READ.names(tree, _, buffer, offset, last)
  return last, add_names(tree, buffer, offset, last) .. " names"
end

function READ.topics(tree, _, buffer, offset, last)
  local structure, count = STRUCTURES.TopicEntry, 0
  while offset + structure.bytes <= last do
    local entry = tree:add(lanecast, buffer(offset, structure.bytes), "TopicEntry")
    local length = add_structure(entry, structure, buffer, offset).name
    offset = offset + structure.bytes
    if offset + length > last then
      entry:add_proto_expert_info(malformed)
      break
    end
    entry:add(topic_name, buffer(offset, length))
    offset, count = offset + padded(length), count + 1
  end
  return last, count .. " topics"
end

function READ.adverts(tree, _, buffer, offset, last)
  local structure, count = STRUCTURES.AdvertEntry, 0
  while offset + structure.bytes <= last do
    local entry = tree:add(lanecast, buffer(offset, structure.bytes), "AdvertEntry")
    local values = add_structure(entry, structure, buffer, offset)
    add_flags(entry, ADVERT_FLAGS, false, values.flags, buffer(offset, structure.bytes))
    offset = offset + structure.bytes
    if offset + values.length > last then
      entry:add_proto_expert_info(malformed)
      break
    end
    count = count + add_names(entry, buffer, offset, offset + values.length)
    offset = offset + values.length
  end
  return last, count .. " topics"
end

function READ.blocks(tree, _, buffer, offset, last)
  local structure, item, count = STRUCTURES.BlockHeader, STRUCTURES.ItemHeader, 0
  while offset + structure.bytes <= last do
    local length = buffer(offset + 4, 2):le_uint()
    if length == 0 then break end
    local block = tree:add(lanecast, buffer(offset, structure.bytes), "BlockHeader")
    add_structure(block, structure, buffer, offset)
    offset = offset + structure.bytes
    local finish = offset + length
    if finish > last then
      block:add_proto_expert_info(malformed)
      break
    end
    while offset + item.bytes <= finish do
      local entry = block:add(lanecast, buffer(offset, item.bytes), "ItemHeader")
      local values = add_structure(entry, item, buffer, offset)
      add_flags(entry, ITEM_FLAGS, false, values.flags, buffer(offset, item.bytes))
      offset = offset + item.bytes
      if offset + values.length > finish then
        entry:add_proto_expert_info(malformed)
        break
      end
      if values.length > 0 then entry:add(payload, buffer(offset, values.length)) end
      offset, count = offset + padded(values.length), count + 1
    end
    offset = finish
  end
  return last, count .. " items"
end

-- Whether a frame's header begins at `offset`.
local function is_frame(buffer, offset)
  return buffer:len() >= offset + HEADER and buffer(offset, 2):le_uint() == MAGIC
    and buffer(offset + 2, 1):uint() == VERSION and LAYOUTS[buffer(offset + 3, 1):uint()] ~= nil
    and buffer(offset + 6, 2):le_uint() >= HEADER
end

-- Adds the frame at `offset`; returns the offset after it.
local function add_frame(buffer, offset, pinfo, root)
  local layout = LAYOUTS[buffer(offset + 3, 1):uint()]
  local last = math.min(offset + buffer(offset + 6, 2):le_uint(), buffer:len())
  local title = "lanecast " .. layout.name .. ": " .. layout.about
  local tree = root:add(lanecast, buffer(offset, last - offset), title)
  local header = add_structure(tree, STRUCTURES.FrameHeader, buffer, offset)
  local flags = buffer(offset + 4, 2)
  local info = layout.name .. add_flags(tree, layout.flags, layout.is_reason, header.flags, flags)
  if layout.is_reason then tree:add_proto_expert_info(reset) end
  local at = offset + HEADER
  for _, part in ipairs(layout.parts) do
    local structure, summary = STRUCTURES[part[2] or ""], nil
    if structure then structure.name = part[2] end
    at, summary = READ[part[1]](tree, structure, buffer, at, last)
    if summary then info = info .. " (" .. summary .. ")" end
  end
  pinfo.cols.info:append(info .. " ")
  return last
end

-- Whether a sealed datagram begins at `offset`.
local function is_sealed(buffer, offset)
  local least = STRUCTURES.SealedHeader.bytes + SEALED_TAG
  return buffer:len() >= offset + least and buffer(offset, 2):le_uint() == SEALED_MAGIC
    and buffer(offset + 2, 1):uint() == SEALED_VERSION and buffer(offset + 6, 2):le_uint() >= least
end

-- Adds the sealed datagram at `offset`; returns the offset after it.
local function add_sealed(buffer, offset, pinfo, root)
  local header = STRUCTURES.SealedHeader
  local last = math.min(offset + buffer(offset + 6, 2):le_uint(), buffer:len())
  local tree = root:add(lanecast, buffer(offset, last - offset), "lanecast Sealed: under a shared key")
  add_structure(tree, header, buffer, offset)
  local body = offset + header.bytes
  if last > body + SEALED_TAG then tree:add(sealed, buffer(body, last - SEALED_TAG - body)) end
  pinfo.cols.info:append("Sealed ")
  return last
end

function lanecast.dissector(buffer, pinfo, root)
  pinfo.cols.protocol = "LANECAST"
  pinfo.cols.info = ""
  local offset = 0
  while true do
    if is_frame(buffer, offset) then
      offset = add_frame(buffer, offset, pinfo, root)
    elseif is_sealed(buffer, offset) then
      offset = add_sealed(buffer, offset, pinfo, root)
    else
      return offset
    end
  end
end

local function dissect_stream(buffer, pinfo, root)
  pinfo.cols.protocol = "LANECAST"
  pinfo.cols.info = ""
  local length = function(range, _, offset) return range(offset + 6, 2):le_uint() end
  dissect_tcp_pdus(buffer, root, HEADER, length, function(frame, info, tree)
    if not is_frame(frame, 0) then return 0 end
    return add_frame(frame, 0, info, tree)
  end)
  return buffer:len()
end

-- Any port: frames are known by their first bytes.
lanecast:register_heuristic("udp", function(buffer, pinfo, root)
  if not is_frame(buffer, 0) and not is_sealed(buffer, 0) then return false end
  lanecast.dissector(buffer, pinfo, root)
  return true
end)

local stream = Proto("lanecast_stream", "lanecast in a stream")
function stream.dissector(buffer, pinfo, root)
  return dissect_stream(buffer, pinfo, root)
end
lanecast:register_heuristic("tcp", function(buffer, pinfo, root)
  if not is_frame(buffer, 0) then return false end
  -- Later segments need not begin with a frame.
  pinfo.conversation = stream
  dissect_stream(buffer, pinfo, root)
  return true
end)
