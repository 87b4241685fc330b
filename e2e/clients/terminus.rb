# Asks a PuppetDB as a Puppet Server does, through Puppet and the termini of puppet-terminus-puppetdb,
# and prints one line for each question: what was asked, a tab, and the answer as JSON.
#
#     terminus.rb CONFDIR VARDIR COLLECTOR NODE...

require 'json'
require 'puppet'
require 'puppet/face'

CONFDIR, VARDIR, COLLECTOR, *NODES = ARGV

# One spelling of what says the same.
def sorted(value)
  case value
  when Hash then value.map { |key, one| [key.to_s, sorted(one)] }.sort.to_h
  when Array then value.map { |one| sorted(one) }
  else value
  end
end

def rows(answer)
  answer.map { |row| sorted(row) }.sort_by(&:to_json)
end

def said(question)
  answer = yield
  puts "#{question}\t#{JSON.generate(sorted(answer))}"
rescue StandardError => e
  puts "#{question}\terror #{e.class}"
end

def collected(manifest)
  Puppet[:code] = manifest
  node = Puppet::Node.new(COLLECTOR, environment: Puppet.lookup(:current_environment))
  files = Puppet::Parser::Compiler.compile(node).resources.select { |it| it.type == 'File' }
  files.map { |file| [file.title, file.to_hash.transform_values(&:to_s)] }.sort
end

Puppet.initialize_settings(['--confdir', CONFDIR, '--vardir', VARDIR])
Puppet::Node::Facts.indirection.terminus_class = :puppetdb
Puppet::Node::Facts.indirection.cache_class = nil
Puppet::Node.indirection.terminus_class = :plain
Puppet::Node.indirection.cache_class = nil
environment = Puppet::Node::Environment.create(:production, [])
loaders = Puppet::Pops::Loaders.new(environment)

Puppet.override(current_environment: environment, loaders: loaders) do
  NODES.each do |name|
    said("facts find #{name}") { Puppet::Node::Facts.indirection.find(name)&.values }
    said("node find #{name}") do
      Puppet::Node.indirection.find(name, environment: environment)&.parameters
    end
    said("node status #{name}") do
      Puppet::Face[:node, '0.0.1'].status(name).map { |node| node.reject { |key, _| key.end_with?('_timestamp') } }
    end
  end
  [
    'File <<| |>>',
    "File <<| tag == 'Site' |>>",
    "File <<| title == '/srv/exported/edge1.example.com' or title == '/srv/exported/moved.example.com' |>>",
    "File <<| ensure == file and title != '/srv/exported/web1.example.com' |>>",
    'Service <<| |>>',
  ].each { |manifest| said(manifest) { collected(manifest) } }
  [
    'nodes[certname, latest_report_status] { order by certname }',
    "resources[certname, title] { type = 'File' and exported = true }",
    "inventory[certname] { facts.os.family = 'RedHat' }",
    ['from', 'nodes', ['extract', ['certname'], ['=', ['fact', 'site'], 'b']]],
  ].each do |query|
    said("puppetdb_query #{query}") { rows(Puppet::Util::Puppetdb.query_puppetdb(query)) }
  end
end
